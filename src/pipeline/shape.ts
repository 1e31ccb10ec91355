import { z } from 'zod';
import { CONTRACT_WORDING, type Wording } from './input-failure.js';
import { didYouMean } from './nearest-name.js';
import { shownValue } from './shown-value.js';

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
 * another is missing, then in the schema's order. In the contract's words unless others are given.
 */
export function shapeProblems(error: z.ZodError, given: unknown, wording: Wording = CONTRACT_WORDING): ShapeProblem[] {
  const unknown = error.issues.filter(({ code }) => code === 'unrecognized_keys');
  return [...unknown, ...error.issues.filter((issue) => !unknown.includes(issue))].flatMap((issue) => {
    if (issue.code === 'unrecognized_keys') {
      const messages = issue.message.split('\n');
      return issue.keys.map((key, i) => ({ path: [...issue.path, key], message: messages[i] ?? '' }));
    }
    const value = issue.path.reduce<unknown>(
      (part, key) => (part as Record<PropertyKey, unknown> | undefined)?.[key],
      given,
    );
    const where = wording.field(pathText(issue.path));
    const what = value === undefined ? 'is missing' : `is ${wording.value(value)}`;
    const end = issue.message.endsWith('?') ? '' : '.';
    return [{ path: issue.path, message: `${where} ${what}: expected ${issue.message}${end}` }];
  });
}

/** What a schema made of a value, or of what is left of it without the parts that are wrong. */
export interface Shaped<Output> {
  /** Absent where a part that must be there is wrong. */
  readonly data?: Output;
  readonly problems: readonly ShapeProblem[];
  /** The paths that were left out. */
  readonly without: readonly (readonly PropertyKey[])[];
}

/** Holds a value against a schema made of this file's parts, finding every problem at once. */
export function shaped<Schema extends z.ZodType>(
  schema: Schema,
  given: unknown,
  wording?: Wording,
): Shaped<z.output<Schema>> {
  const parsed = schema.safeParse(given);
  if (parsed.success) return { data: parsed.data, problems: [], without: [] };
  const problems = shapeProblems(parsed.error, given, wording);
  // Where leaving out just what is wrong leaves another fault, the setting that holds it goes as a whole.
  for (const depth of [Infinity, 1]) {
    const without = problems.map(({ path }) => path.slice(0, path[0] === 'checks' ? 2 : depth));
    const left = schema.safeParse(omitted(given, without));
    if (left.success) return { data: left.data, problems, without };
  }
  return { problems, without: [] };
}

/** A copy without the parts at these paths. */
function omitted(value: unknown, paths: readonly (readonly PropertyKey[])[]): unknown {
  if (paths.length === 0 || typeof value !== 'object' || value === null) return value;
  const kept = Object.entries(value)
    .filter(([key]) => !paths.some((path) => path.length === 1 && String(path[0]) === key))
    .map(([key, part]): [string, unknown] => {
      const inside = paths.filter((path) => path.length > 1 && String(path[0]) === key).map((path) => path.slice(1));
      return [key, omitted(part, inside)];
    });
  return Array.isArray(value) ? kept.map(([, part]) => part) : Object.fromEntries(kept);
}

function pathText(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, part) => {
    if (typeof part === 'number') return `${text}[${part}]`;
    return text === '' ? String(part) : `${text}.${String(part)}`;
  }, '');
}

/** A line a name, of which the first says what there is. */
function unknownNames(noun: string, given: readonly string[], known: readonly string[]): string {
  return given
    .map((name, i) => {
      const there = i === 0 ? ` There are: ${known.join(', ')}.` : '';
      return `unknown ${noun} ${shownValue(name)}.${didYouMean(name, known)}${there}`;
    })
    .join('\n');
}
