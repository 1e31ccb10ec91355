import { jsonText } from './json-text.js';

/** What of a column's type decides in which form values go there. */
export type ValueType =
  | { readonly kind: 'float' | 'integer' | 'json' | 'bytea' | 'timestamptz' | 'other' }
  | { readonly kind: 'array'; readonly element: ValueType };

/** Throws, and is given what was wrong: never the value. */
export type Refuse = (problem: string) => never;

const KINDS: Readonly<Record<string, Exclude<ValueType['kind'], 'array'>>> = {
  int2: 'integer',
  int4: 'integer',
  int8: 'integer',
  oid: 'integer',
  float4: 'float',
  float8: 'float',
  json: 'json',
  jsonb: 'json',
  bytea: 'bytea',
  timestamptz: 'timestamptz',
};
/** Half a surrogate pair, as a regular expression of code points alone sees it. */
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The form of a type's values, by the name of the type below a domain, and of the one below an array's elements. */
export function valueType(baseType: string, elementType?: string): ValueType {
  if (elementType !== undefined) return { kind: 'array', element: valueType(elementType) };
  return { kind: Object.hasOwn(KINDS, baseType) ? (KINDS[baseType] ?? 'other') : 'other' };
}

/** A value in PostgreSQL's own text form for a type: exactly, or `refuse` is called. Not for null and undefined. */
export function valueText(value: unknown, type: ValueType, refuse: Refuse): string {
  if (typeof value === 'string') {
    refuseUnstorable(value, refuse);
    return value;
  }
  if (type.kind === 'json') return jsonText(value, refuse);
  switch (typeof value) {
    case 'number':
      return numberText(value, type, refuse);
    case 'bigint':
      return value.toString();
    case 'boolean':
      return value ? 't' : 'f';
    case 'object':
      if (value instanceof Date) return dateText(value, type, refuse);
      if (value instanceof Uint8Array)
        return type.kind === 'bytea' ? bytesText(value) : refuse('bytes go to bytea only');
      if (Array.isArray(value)) {
        return type.kind === 'array'
          ? arrayText(value, type.element, refuse)
          : refuse('an array goes to an array column or json only');
      }
      return refuse('an object goes to json or jsonb only; give a string in PostgreSQL’s own form');
    default:
      return refuse(`a ${typeof value} cannot be stored`);
  }
}

function refuseUnstorable(text: string, refuse: Refuse): void {
  if (text.includes('\0')) refuse('the character U+0000 cannot be stored in PostgreSQL');
  // UTF-8 has no form for it: another character would be stored in its place.
  if (LONE_SURROGATE.test(text)) refuse('half of a surrogate pair is no character');
}

function numberText(value: number, { kind }: ValueType, refuse: Refuse): string {
  // String(-0) is 0. PostgreSQL reads NaN and Infinity as JavaScript writes them.
  if (kind === 'float') return Object.is(value, -0) ? '-0' : String(value);
  if (Number.isSafeInteger(value)) return String(value);
  if (kind === 'integer')
    return refuse('this number is not a whole number that JavaScript holds exactly; give a bigint or a string');
  return refuse('a fraction as a JavaScript number is not exact; give it as a string');
}

function dateText(value: Date, { kind }: ValueType, refuse: Refuse): string {
  if (Number.isNaN(value.getTime())) return refuse('the Date is invalid');
  if (kind !== 'timestamptz') return refuse('a Date is an instant and goes to timestamptz only; give a string');
  const year = value.getUTCFullYear();
  // PostgreSQL reads neither a signed year nor year 0.
  const written = year > 0 ? String(year).padStart(4, '0') : String(1 - year).padStart(4, '0');
  const rest = value.toISOString().replace(/^[+-]?\d+/, '');
  return `${written}${rest}${year > 0 ? '' : ' BC'}`;
}

function bytesText({ buffer, byteOffset, byteLength }: Uint8Array): string {
  return `\\x${Buffer.from(buffer, byteOffset, byteLength).toString('hex')}`;
}

function arrayText(value: readonly unknown[], element: ValueType, refuse: Refuse): string {
  const elements = Array.from(value, (item): string => {
    if (item === undefined || item === null) return 'NULL';
    // A json element may be an array itself; any other type's are the array's further dimensions.
    if (Array.isArray(item) && element.kind !== 'json') return arrayText(item, element, refuse);
    return `"${valueText(item, element, refuse).replace(/["\\]/g, '\\$&')}"`;
  });
  return `{${elements.join(',')}}`;
}
