import { Failure } from '../failure.js';
import type { Check, Pipeline } from '../pipeline/pipeline.js';
import { checkName } from './check-name.js';
import { quoted } from './identifier.js';
import type { Target } from './target.js';

export type SumCheck = Extract<Check, { readonly kind: 'sum' }>;

/** A pipeline's `sum` checks, each with its place in the list of its checks. */
export function sumChecks(pipeline: Pick<Pipeline, 'checks'>): { readonly place: number; readonly check: SumCheck }[] {
  return pipeline.checks.flatMap((check, place) => (check.kind === 'sum' ? [{ place, check }] : []));
}

/**
 * SQL that gives what a check's query answers as an array of texts: at most two, since the second is one too many. The server
 * refuses a query of several columns as it parses it.
 */
export function sumAnswers(query: string): string {
  return `ARRAY(SELECT * FROM (\n${query}\n) answered LIMIT 2)::pg_catalog.text[]`;
}

const NUMBER = /^(?:[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?|NaN|[+-]?Infinity)$/i;

/** The one value of a check's query; none is NULL. Throws `InvalidPipeline` for more than one. */
export function oneSum(
  pipeline: { readonly name: string },
  check: SumCheck,
  answers: readonly (string | null)[],
): string | null {
  if (answers.length > 1) {
    throw new Failure(
      'InvalidPipeline',
      `The query of the check ${checkName(check)} of ${pipeline.name} gives more than one row: expected one value, such as SELECT sum(…).`,
    );
  }
  return answers[0] ?? null;
}

/** Base types that can be summed, and how their sums are compared. */
const COMPARED: Readonly<Record<string, 'numeric' | 'float8' | 'interval'>> = {
  int2: 'numeric',
  int4: 'numeric',
  int8: 'numeric',
  numeric: 'numeric',
  float4: 'float8',
  float8: 'float8',
  interval: 'interval',
};

/**
 * The share of the sum of absolute values by which two sums of the same floating-point numbers may differ, since the order of
 * additions decides their last digits: some ten times what millions of numbers give.
 */
const FLOAT_TOLERANCE = { float4: '1e-5', float8: '1e-9' } as const;

/**
 * SQL, an aggregate over the window, that is true where the column's sum is the expected one. Exactly, except for
 * floating-point numbers. No row sums up to nothing: NULL is equal to 0. Throws `SchemaMismatch` for a column that has no sum.
 */
export function sumEquals(
  pipeline: { readonly name: string },
  check: SumCheck,
  target: Target,
  expected: string,
): string {
  const { type = '', baseType = '' } = target.columns.find(({ name }) => name === check.column) ?? {};
  const compared = COMPARED[baseType];
  if (!compared) {
    throw new Failure(
      'SchemaMismatch',
      `The check ${checkName(check)} of ${pipeline.name}: the column is of type ${type}: expected an integer, numeric, floating-point or interval column.`,
    );
  }
  const column = quoted(check.column);
  const given = `coalesce(${expected}::pg_catalog.${compared}, '0')`;
  const sum = `coalesce(pg_catalog.sum(${compared === 'float8' ? `${column}::pg_catalog.float8` : column})::pg_catalog.${compared}, '0')`;
  if (compared !== 'float8') return `${sum} = ${given}`;
  const apart = `pg_catalog.abs(${sum} - ${given})`;
  const tolerance = FLOAT_TOLERANCE[baseType === 'float4' ? 'float4' : 'float8'];
  return `(${sum} = ${given} OR ${apart} < 'Infinity' AND ${apart} <= ${tolerance}::pg_catalog.float8 * coalesce(pg_catalog.sum(pg_catalog.abs(${column}::pg_catalog.float8)), 0))`;
}

/** What the check's query gave, as a value that the comparison's cast can read. Throws `InvalidPipeline` where it cannot. */
export function readableSum(
  pipeline: { readonly name: string },
  check: SumCheck,
  target: Target,
  value: string | null,
): string | null {
  const { baseType = '' } = target.columns.find(({ name }) => name === check.column) ?? {};
  if (value === null || COMPARED[baseType] === 'interval' || NUMBER.test(value)) return value;
  throw new Failure(
    'InvalidPipeline',
    `The query of the check ${checkName(check)} of ${pipeline.name} gives no number: expected one value, such as SELECT sum(…).`,
  );
}
