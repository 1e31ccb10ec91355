/**
 * Oids of PostgreSQL's own types whose binary form is the same in every supported version, and which every server reads into
 * the value that it was. Of the rest the text form is sent: `xml` (its encoding), `tsvector`, `regclass` and the like (oids
 * of one database), and whatever an extension or a user has made, whose oid differs from server to server.
 * https://github.com/postgres/postgres/blob/master/src/include/catalog/pg_type.dat
 */
const BINARY: ReadonlySet<number> = new Set([
  // bool, bytea, "char", name, int8, int2, int4, text, oid, json, jsonb
  16, 17, 18, 19, 20, 21, 23, 25, 26, 114, 3802,
  // float4, float8, money, numeric, bpchar, varchar, uuid
  700, 701, 790, 1700, 1042, 1043, 2950,
  // date, time, timetz, timestamp, timestamptz, interval
  1082, 1083, 1266, 1114, 1184, 1186,
  // inet, cidr, macaddr, macaddr8, bit, varbit
  869, 650, 829, 774, 1560, 1562,
  // point, lseg, path, box, polygon, line, circle
  600, 601, 602, 603, 604, 628, 718,
  // int4range, numrange, tsrange, tstzrange, daterange, int8range
  3904, 3906, 3908, 3910, 3912, 3926,
  // Arrays: bool, bytea, "char", name, int2, int4, text, bpchar, varchar, int8
  1000, 1001, 1002, 1003, 1005, 1007, 1009, 1014, 1015, 1016,
  // Arrays: float4, float8, oid, json, jsonb, numeric, uuid
  1021, 1022, 1028, 199, 3807, 1231, 2951,
  // Arrays: timestamp, date, time, timestamptz, interval, timetz
  1115, 1182, 1183, 1185, 1187, 1270,
  // Arrays: inet, cidr, bit, varbit
  1041, 651, 1561, 1563,
]);

/** Types with a lower oid are PostgreSQL's own, and have it on every server. (FirstGenbkiObjectId of the server's transam.h.) */
const FIRST_LOCAL_OID = 10_000;

export function isBuiltIn(type: number): boolean {
  return type < FIRST_LOCAL_OID;
}

/** Whether a type's binary form may go from any server to any other. */
export function isSameInBinary(type: number): boolean {
  return BINARY.has(type);
}
