import type { Check, Pipeline } from '../pipeline/pipeline.js';
import { sumEquals } from './check-sum.js';
import { quoted } from './identifier.js';
import { type RowCounters, rowCounters, writtenSince } from './row-counters.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import type { WindowCondition } from './window-condition.js';

/** What one pass over the window has counted. */
export interface CheckCounts {
  /** Rows that stand in the window now. */
  readonly inside: number;
  /** What the fill's transaction has written in the target, in the window and elsewhere. */
  readonly written: RowCounters;
  /** By the check's place in the pipeline's list: what it counts, as {@link aggregates} orders it. */
  readonly counts: readonly (readonly (number | null)[])[];
}

/** Counts the window's rows and everything that checks count there, in one pass. */
export async function countForChecks(
  session: Session,
  window: WindowCondition,
  pipeline: Pipeline,
  key: string,
  target: Target,
  sums: ReadonlyMap<number, string | null>,
): Promise<CheckCounts> {
  const values: unknown[] = [...window.values];
  const bind: Bind = (value) => `$${values.push(value)}`;
  const tree = `pg_catalog.unnest(${bind(target.tree)}::pg_catalog.oid[])`;
  const wanted = pipeline.checks.map((check, place) =>
    aggregates(check, pipeline, key, target, bind, sums.get(place) ?? null),
  );
  const columns = wanted.flatMap((list, place) => list.map((sql, i) => `, ${sql} AS c${place}_${i}`));
  const [row] = await session.rows<Counted>(
    // By ctid, which no index holds: to read the rows by an index alone would look each of them up in the table, since none of
    // them is known to be visible to all.
    `SELECT pg_catalog.count(ctid)::pg_catalog.float8 AS inside, ${rowCounters(tree)} AS counters${columns.join('')}
       FROM ${window.table} WHERE ${window.condition}`,
    values,
  );
  return {
    inside: row?.inside ?? 0,
    written: writtenSince(target.before, row?.counters),
    counts: wanted.map((list, place) => list.map((_, i) => row?.[`c${place}_${i}`] ?? null)),
  };
}

interface Counted {
  readonly inside: number;
  readonly counters: RowCounters | null;
  readonly [count: `c${number}_${number}`]: number | null;
}

type Bind = (value: unknown) => string;

/** What a check counts in the pass: SQL of type float8, in the order in which the check is judged. */
function aggregates(
  check: Check,
  pipeline: Pipeline,
  key: string,
  target: Target,
  bind: Bind,
  sum: string | null,
): readonly string[] {
  switch (check.kind) {
    case 'change':
      return [
        `(SELECT rows FROM repave.partition WHERE pipeline = ${bind(pipeline.name)} AND key = ${bind(key)})::pg_catalog.float8`,
      ];
    case 'not_null':
      return check.columns.map((column) => rowsWhere(`${quoted(column)} IS NULL`));
    case 'accepted':
      return [rowsWhere(`NOT (${isAccepted(check.column, bind(check.values))})`)];
    case 'range':
      return [
        check.min === undefined ? '0::pg_catalog.float8' : rowsWhere(isBeyond(check.column, '<', bind(check.min))),
        check.max === undefined ? '0::pg_catalog.float8' : rowsWhere(isBeyond(check.column, '>', bind(check.max))),
        // NaN counts as greater than any number, so that without a maximum it would be in range.
        check.max === undefined && mayBeNaN(target, check.column)
          ? rowsWhere(`${quoted(check.column)} = 'NaN'`)
          : '0::pg_catalog.float8',
      ];
    case 'sum':
      return [`(${sumEquals(pipeline, check, target, bind(sum))})::pg_catalog.int4::pg_catalog.float8`];
    case 'rows':
    case 'unique':
    case 'sql':
      return [];
    default:
      return check satisfies never;
  }
}

/** A value's type is the column's own, without a length, which would cut it: so the server reads a parameter beside a column. */
export function isAccepted(column: string, values: string): string {
  return `${quoted(column)} = ANY (${values})`;
}

/** As {@link isAccepted}. */
export function isBeyond(column: string, operator: '<' | '>', value: string): string {
  return `${quoted(column)} ${operator} ${value}`;
}

function mayBeNaN({ columns }: Target, column: string): boolean {
  const type = columns.find(({ name }) => name === column)?.baseType;
  return type === 'numeric' || type === 'float4' || type === 'float8';
}

function rowsWhere(condition: string): string {
  return `pg_catalog.count(*) FILTER (WHERE ${condition})::pg_catalog.float8`;
}
