import { z } from 'zod';
import { didYouMean } from './nearest-name.js';

/** One thing that is wrong with a given object: where, and a sentence that says what was given and what was expected. */
export interface ShapeProblem {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

/** An object of exactly these fields; an unknown one is a problem that names those there are. `noun`: `setting`, `field`. */
export function exactObject<Shape extends z.ZodRawShape>(
  noun: string,
  expected: string,
  shape: Shape,
): z.ZodObject<Shape, z.core.$strict> {
  return z.strictObject(shape, {
    error: (issue) =>
      issue.code === 'unrecognized_keys' ? unknownNames(noun, issue.keys, Object.keys(shape)) : expected,
  });
}

/** A whole number of a range. */
export function wholeNumber(min: number, max: number): z.ZodCustom<number, number> {
  return z.custom<number>(
    (value) => Number.isInteger(value) && (value as number) >= min && (value as number) <= max,
    `a whole number from ${min} to ${max}`,
  );
}

/** One of a few words. */
export function oneOf<const Words extends readonly string[]>(words: Words): z.ZodCustom<Words[number], Words[number]> {
  return z.custom<Words[number]>(
    (value) => typeof value === 'string' && words.includes(value),
    `one of ${words.join(', ')}`,
  );
}

/** A text that passes a test; `expected` says which. */
export function textThat(expected: string, test: (text: string) => boolean): z.ZodCustom<string, string> {
  return z.custom<string>((value) => typeof value === 'string' && test(value), expected);
}

export function trueOrFalse(): z.ZodCustom<boolean, boolean> {
  return z.custom<boolean>((value) => typeof value === 'boolean', 'true or false');
}

/**
 * The problems that a schema made of this file's parts has found in a value: unknown names first, since a misspelt one is why
 * another is missing, then in the schema's order.
 */
export function shapeProblems(error: z.ZodError, given: unknown): ShapeProblem[] {
  const unknown = error.issues.filter(({ code }) => code === 'unrecognized_keys');
  return [...unknown, ...error.issues.filter((issue) => !unknown.includes(issue))].map((issue) => {
    if (issue.code === 'unrecognized_keys')
      return { path: [...issue.path, ...issue.keys.slice(0, 1)], message: issue.message };
    const value = issue.path.reduce<unknown>(
      (part, key) => (part as Record<PropertyKey, unknown> | undefined)?.[key],
      given,
    );
    const where = pathText(issue.path);
    const what = value === undefined ? 'is missing' : `is ${shownValue(value)}`;
    return { path: issue.path, message: `${where} ${what}: expected ${issue.message}.` };
  });
}

/** A given value as messages show it: short, and never a URL, which may hold a password. */
export function shownValue(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') return `${value} (a number)`;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return `a ${typeof value}`;
  if (value.includes('://')) return 'a URL';
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}

function unknownNames(noun: string, given: readonly string[], known: readonly string[]): string {
  const [first = ''] = given;
  const others = given.length > 1 ? ` (and ${given.length - 1} more)` : '';
  return `unknown ${noun} ${shownValue(first)}${others}.${didYouMean(first, known)} There are: ${known.join(', ')}.`;
}
