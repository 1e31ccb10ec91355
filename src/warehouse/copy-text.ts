import { Failure } from '../failure.js';
import type { Row } from '../pipeline/pipeline.js';
import type { TargetColumn } from './target.js';

const INTEGERS = new Set(['int2', 'int4', 'int8', 'oid']);
const FLOATS = new Set(['float4', 'float8']);
const LONE_SURROGATE = /\p{Surrogate}/u;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/**
 * One row as a line of COPY's text form, its values by the type of the column each goes to. undefined and null are NULL.
 * https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.2
 *
 * Throws `DataError` naming column and row number for a value that has no exact form in the column's type.
 */
export function copyLine(row: Row, columns: readonly TargetColumn[], rowNumber: number): string {
  const fields = columns.map((column) => {
    const value = row[column.name];
    if (value === undefined || value === null) return '\\N';
    const text = valueText(value, column.baseType, (problem) => {
      throw new Failure(
        'DataError',
        `Row ${rowNumber}, column ${JSON.stringify(column.name)} (${column.type}): ${problem}.`,
      );
    });
    return escape(text);
  });
  return `${fields.join('\t')}\n`;
}

function escape(text: string): string {
  return /[\\\n\r\t]/.test(text) ? text.replace(/[\\\n\r\t]/g, (character) => ESCAPES[character] ?? character) : text;
}

/** A value in PostgreSQL's own text form for a type. `refuse` throws, and is given what was wrong, never the value. */
export function valueText(value: unknown, type: string, refuse: (problem: string) => never): string {
  if (typeof value === 'string') {
    if (value.includes('\0')) return refuse('the character U+0000 cannot be stored in PostgreSQL');
    // UTF-8 has no form for it: another character would be stored in its place.
    if (LONE_SURROGATE.test(value)) return refuse('half of a surrogate pair is no character');
    return value;
  }
  if (type === 'json' || type === 'jsonb') return jsonText(value, refuse);
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
        return type === 'bytea' ? `\\x${Buffer.from(value).toString('hex')}` : refuse('bytes go to bytea only');
      if (Array.isArray(value)) return arrayText(value, type, refuse);
      return refuse('an object goes to json or jsonb only; give a string in PostgreSQL’s own form');
    default:
      return refuse(`a ${typeof value} cannot be stored`);
  }
}

function numberText(value: number, type: string, refuse: (problem: string) => never): string {
  // String(-0) is 0. PostgreSQL reads NaN and Infinity as JavaScript writes them.
  if (FLOATS.has(type)) return Object.is(value, -0) ? '-0' : String(value);
  if (Number.isSafeInteger(value)) return Object.is(value, -0) ? '0' : String(value);
  if (INTEGERS.has(type))
    return refuse('this number is not a whole number that JavaScript holds exactly; give a bigint or a string');
  return refuse('a fraction as a JavaScript number is not exact; give it as a string');
}

function dateText(value: Date, type: string, refuse: (problem: string) => never): string {
  if (Number.isNaN(value.getTime())) return refuse('the Date is invalid');
  if (type !== 'timestamptz') return refuse('a Date is an instant and goes to timestamptz only; give a string');
  const year = value.getUTCFullYear();
  // PostgreSQL reads neither a signed year nor year 0.
  const written = year > 0 ? String(year).padStart(4, '0') : String(1 - year).padStart(4, '0');
  const rest = value.toISOString().replace(/^[+-]?\d+/, '');
  return `${written}${rest}${year > 0 ? '' : ' BC'}`;
}

function arrayText(value: readonly unknown[], type: string, refuse: (problem: string) => never): string {
  if (!type.startsWith('_')) return refuse('an array goes to an array column or json only');
  const json = type === '_json' || type === '_jsonb';
  const elements = value.map((element): string => {
    if (element === undefined || element === null) return 'NULL';
    if (Array.isArray(element) && !json) return arrayText(element, type, refuse);
    return `"${valueText(element, type.slice(1), refuse).replace(/["\\]/g, '\\$&')}"`;
  });
  return `{${elements.join(',')}}`;
}

function jsonText(value: unknown, refuse: (problem: string) => never): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    return refuse('the value has no JSON form');
  }
  return text === undefined ? refuse('the value has no JSON form') : text;
}
