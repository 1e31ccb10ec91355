import { Failure } from '../failure.js';
import type { Refuse } from './value-text.js';

/** An escape of U+0000 or of half a surrogate pair, which JSON can write and PostgreSQL cannot hold; not `\\u0000`. */
const UNSTORABLE = /(?<!\\)(?:\\\\)*\\u(?:(0000)|d[89a-f][0-9a-f]{2})/;

/**
 * A value as JSON: as JSON.stringify writes it, a key that holds undefined left out, but never with null or nothing in the
 * place of what has no JSON form; then `refuse` is called.
 */
export function jsonText(value: unknown, refuse: Refuse): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value, function (this: Readonly<Record<string, unknown>>, key, converted: unknown) {
      // What it was before its own toJSON.
      const problem = formlessness(this[key], converted);
      return problem === undefined ? converted : refuse(problem);
    });
  } catch (error) {
    if (error instanceof Failure) throw error;
    return refuse('the value has no JSON form: it refers to itself, or its toJSON throws');
  }
  if (text === undefined) return refuse('the value has no JSON form');
  const unstorable = text.includes('\\u') ? UNSTORABLE.exec(text) : null;
  if (unstorable) {
    return refuse(
      unstorable[1]
        ? 'the character U+0000 cannot be stored in PostgreSQL'
        : 'half of a surrogate pair is no character',
    );
  }
  return text;
}

/** Why a value within JSON would be lost or changed; undefined where it would not. */
function formlessness(value: unknown, converted: unknown): string | undefined {
  switch (typeof converted) {
    case 'number':
      return Number.isFinite(converted) ? undefined : 'NaN and Infinity have no JSON form';
    case 'bigint':
      return 'a bigint has no JSON form; give it as a string, or the whole value as JSON text';
    case 'function':
    case 'symbol':
      return `a ${typeof converted} has no JSON form`;
    case 'object':
      if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'the Date is invalid' : undefined;
      if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer)
        return 'bytes have no JSON form; give them as a string';
      if (value instanceof Map || value instanceof Set)
        return 'a Map or a Set has no JSON form; give an object or an array';
      return undefined;
    default:
      return undefined;
  }
}
