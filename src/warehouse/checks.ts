import type { Check, Pipeline } from '../pipeline/pipeline.js';
import { Failure } from '../failure.js';
import { counted } from './counted.js';
import type { CheckOutcome } from './fill-request.js';
import { quoted, quotedList } from './identifier.js';
import type { Session } from './session.js';
import { rowsWritten, type Target } from './target.js';

/** A window in SQL: the condition on the partition column, and its two bounds as bound values $1 and $2. */
export interface WindowCondition {
  readonly table: string;
  readonly condition: string;
  readonly values: readonly [lower: string, upper: string];
}

export interface WindowCount {
  /** Rows that stand in the window now. */
  readonly inside: number;
  /** Rows that the fill's transaction has inserted into the target or changed there, in the window and elsewhere; NaN where the server does not count. */
  readonly written: number;
  readonly checks: readonly CheckOutcome[];
}

/** The pipeline's checks on a column that the target lacks: `SchemaMismatch`, before a row moves. */
export function refuseUnknownColumns(pipeline: Pipeline, target: Target): void {
  for (const check of pipeline.checks) {
    if (check.kind === 'rows') continue;
    for (const column of check.columns) {
      if (target.columns.some(({ name }) => name === column)) continue;
      throw new Failure(
        'SchemaMismatch',
        `The check ${checkName(check)} of ${pipeline.name} names the column ${JSON.stringify(column)}, which ${target.name} does not have.`,
      );
    }
  }
}

/** Counts the window and works out every check, inside the fill's transaction: one pass, and one more for each `unique` that no index holds. */
export async function countWindow(
  session: Session,
  window: WindowCondition,
  pipeline: Pipeline,
  target: Target,
): Promise<WindowCount> {
  const nullable = pipeline.checks.flatMap((check) => (check.kind === 'not_null' ? check.columns : []));
  const nulls = nullable.map(
    (column, i) => `, pg_catalog.count(*) FILTER (WHERE ${quoted(column)} IS NULL)::pg_catalog.float8 AS null_${i}`,
  );
  const [count] = await session.rows<Record<string, number | null>>(
    `SELECT pg_catalog.count(*)::pg_catalog.float8 AS inside, ${rowsWritten('pg_catalog.unnest($3::pg_catalog.oid[])')} AS written${nulls.join('')}
       FROM ${window.table} WHERE ${window.condition}`,
    [...window.values, target.tree],
  );
  const inside = count?.inside ?? 0;
  const written = (count?.written ?? NaN) - target.writtenBefore;
  const nullCounts = new Map(nullable.map((column, i) => [column, count?.[`null_${i}`] ?? 0]));
  const checks: CheckOutcome[] = [];
  for (const check of pipeline.checks) checks.push(await judge(check, inside, nullCounts, session, window, target));
  return { inside, written, checks };
}

async function judge(
  check: Check,
  inside: number,
  nullCounts: ReadonlyMap<string, number>,
  session: Session,
  window: WindowCondition,
  target: Target,
): Promise<CheckOutcome> {
  const name = checkName(check);
  switch (check.kind) {
    case 'rows': {
      const passed = inside >= (check.min ?? 0) && inside <= (check.max ?? Infinity);
      return { check: name, passed, seen: counted(inside) };
    }
    case 'not_null': {
      const found = check.columns
        .map((column) => ({ column, nulls: nullCounts.get(column) ?? 0 }))
        .filter(({ nulls }) => nulls > 0);
      return {
        check: name,
        passed: found.length === 0,
        seen: found.map(({ column, nulls }) => `${nulls} NULL in ${column}`).join(', ') || 'no NULL',
      };
    }
    case 'unique': {
      if (target.uniqueKeys.some((key) => key.every((column) => check.columns.includes(column)))) {
        return { check: name, passed: true, seen: 'held by a unique index' };
      }
      const [row] = await session.rows<{ groups: number }>(
        `SELECT pg_catalog.count(*)::pg_catalog.float8 AS groups
           FROM (SELECT FROM ${window.table} WHERE ${window.condition} GROUP BY ${quotedList(check.columns)} HAVING pg_catalog.count(*) > 1) repeated`,
        window.values,
      );
      const groups = row?.groups ?? 0;
      return {
        check: name,
        passed: groups === 0,
        seen: groups === 0 ? 'no repetition' : `${counted(groups, 'value')} more than once`,
      };
    }
    default:
      return check satisfies never;
  }
}

/** Throws `CheckFailed`, naming every check that failed and what was seen. */
export function refuseFailedChecks(pipeline: Pipeline, key: string, checks: readonly CheckOutcome[]): void {
  const failed = checks.filter(({ passed }) => !passed);
  if (failed.length === 0) return;
  const said = failed.map(({ check, seen }) => `${check}: ${seen}`).join('; ');
  throw new Failure(
    'CheckFailed',
    `The new rows of ${pipeline.name} ${key} do not pass ${failed.length === 1 ? 'the check' : 'the checks'} ${said}. The old rows stand. Mend the source or the check, then fill again.`,
  );
}

function checkName(check: Check): string {
  switch (check.kind) {
    case 'rows': {
      const limits = [
        check.min !== undefined ? `min ${check.min}` : '',
        check.max !== undefined ? `max ${check.max}` : '',
      ];
      return `rows (${limits.filter(Boolean).join(', ')})`;
    }
    case 'unique':
    case 'not_null':
      return `${check.kind} (${check.columns.join(', ')})`;
    default:
      return check satisfies never;
  }
}
