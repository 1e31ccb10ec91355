import { Failure } from '../failure.js';
import type { Check, Pipeline } from '../pipeline/pipeline.js';
import { refuseUnknownColumns } from './check-columns.js';
import { naming } from './check-failure.js';
import { checkName } from './check-name.js';
import { sumAnswers, sumEquals } from './check-sum.js';
import { isAccepted, isBeyond } from './check-counts.js';
import { sqlstate } from './errors.js';
import { quotedList, quotedTable } from './identifier.js';
import { textAlone } from './query-text.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/**
 * Has the server judge the checks before a row moves: their columns, values and queries. In a savepoint, which gives back the
 * locks that this takes on the target: `refuseSelfRead` must see the query's own.
 *
 * Throws `SchemaMismatch` or `InvalidPipeline`, naming the check; the transaction is then aborted.
 */
export async function judgeChecks(session: Session, pipeline: Pipeline, target: Target): Promise<void> {
  refuseUnknownColumns(pipeline, target);
  const judged = pipeline.checks.flatMap((check) => {
    const judge = judgeOf(check, pipeline, target);
    return judge ? [{ check, judge }] : [];
  });
  if (judged.length === 0) return;
  await session.query('SAVEPOINT repave_checks');
  for (const { check, judge } of judged) await naming(pipeline, check, () => judge(session), { beforeRows: true });
  await session.query('ROLLBACK TO SAVEPOINT repave_checks; RELEASE SAVEPOINT repave_checks');
}

type Judge = (session: Session) => Promise<unknown>;

/** Undefined where there is nothing that only the server can tell. */
function judgeOf(check: Check, pipeline: Pipeline, target: Target): Judge | undefined {
  const table = quotedTable(pipeline.target);
  switch (check.kind) {
    case 'accepted':
      return (session) =>
        readValues(
          session,
          check,
          pipeline,
          target,
          `SELECT FROM ${table} WHERE false AND ${isAccepted(check.column, '$1')}`,
          [check.values],
        );
    case 'range': {
      const given = [
        check.min === undefined ? undefined : ({ operator: '<', value: check.min } as const),
        check.max === undefined ? undefined : ({ operator: '>', value: check.max } as const),
      ].filter((bound) => bound !== undefined);
      const beyond = given.map(({ operator }, i) => isBeyond(check.column, operator, `$${i + 1}`));
      return (session) =>
        readValues(
          session,
          check,
          pipeline,
          target,
          `SELECT FROM ${table} WHERE false AND (${beyond.join(' OR ')})`,
          given.map(({ value }) => value),
        );
    }
    case 'sum':
      return async (session) => {
        await session.describe(`SELECT ${sumEquals(pipeline, check, target, '$1')} FROM ${table}`);
        // A query that runs elsewhere is judged there.
        if (pipeline.kind === 'sql' && pipeline.source !== undefined) return;
        await session.describe(`SELECT ${sumAnswers(textAlone(check.equals))}`);
      };
    case 'sql':
      return (session) => session.describe(foundRows(check.query.text));
    case 'unique':
      if (check.columns.every((column) => hasEquality(column, target))) return undefined;
      return (session) => session.describe(`SELECT FROM ${table} GROUP BY ${quotedList(check.columns)}`);
    case 'rows':
    case 'change':
    case 'not_null':
      return undefined;
    default:
      return check satisfies never;
  }
}

/** Base types that are known to have one, so that the common check costs no question. */
const WITH_EQUALITY = new Set([
  ...['int2', 'int4', 'int8', 'numeric', 'float4', 'float8', 'text', 'varchar', 'bpchar', 'bool', 'uuid', 'date'],
  ...['timestamp', 'timestamptz', 'interval', 'jsonb', 'bytea', 'inet'],
]);

function hasEquality(name: string, target: Target): boolean {
  return target.columns.some((column) => column.name === name && WITH_EQUALITY.has(column.baseType));
}

/** Rows that a check's query gives are counted up to this many. */
export const MAX_FOUND = 1000;

/** SQL that counts the rows of a check's query, and stops at one more than are counted. */
export function foundRows(query: string): string {
  return `SELECT pg_catalog.count(*)::pg_catalog.float8 AS found FROM (SELECT FROM (\n${query}\n) given LIMIT ${MAX_FOUND + 1}) r`;
}

/** Runs a statement that reads no row, so that the server reads its values as the column's type would. */
async function readValues(
  session: Session,
  check: Extract<Check, { readonly kind: 'accepted' | 'range' }>,
  pipeline: Pipeline,
  target: Target,
  text: string,
  values: readonly unknown[],
): Promise<void> {
  try {
    await session.query(text, values);
  } catch (error) {
    if (!sqlstate(error)?.startsWith('22')) throw error;
    const type = target.columns.find(({ name }) => name === check.column)?.type ?? 'unknown';
    throw new Failure(
      'InvalidPipeline',
      `The check ${checkName(check)} of ${pipeline.name} has a value that the type ${type} of the column ${JSON.stringify(check.column)} cannot read. Mend the check.`,
    );
  }
}
