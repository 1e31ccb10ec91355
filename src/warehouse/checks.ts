import { Failure } from '../failure.js';
import type { Check, Pipeline } from '../pipeline/pipeline.js';
import type { Window } from '../calendar/calendar.js';
import { naming } from './check-failure.js';
import { checkName } from './check-name.js';
import { readableSum, sumChecks } from './check-sum.js';
import { countForChecks, type CheckCounts } from './check-counts.js';
import { counted } from './counted.js';
import type { CheckOutcome } from './fill-request.js';
import { quotedList } from './identifier.js';
import { foundRows, MAX_FOUND } from './judge-checks.js';
import { parameterValues } from './parameter-values.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import type { WindowCondition } from './window-condition.js';

/** What stands in the window, counted, and what the checks say to it. */
export interface CheckedWindow extends Pick<CheckCounts, 'inside' | 'written'> {
  readonly checks: readonly CheckOutcome[];
}

/**
 * Counts the window and works out every check, inside the fill's transaction: one pass for all that can be counted together,
 * one more for each `unique` that no index holds, and what the queries of `sql` read. `sums`: what the queries of `sum` gave,
 * by the check's place in the list.
 *
 * Judges none of the outcomes. Throws `InvalidPipeline` and the like, naming the check, where one cannot be worked out.
 */
export async function checkWindow(
  session: Session,
  condition: WindowCondition,
  pipeline: Pipeline,
  window: Window,
  target: Target,
  sums: ReadonlyMap<number, string | null>,
): Promise<CheckedWindow> {
  // Before the count, which then has the last word on what was written: a query's functions may write.
  const passes: (number | undefined)[] = [];
  for (const check of pipeline.checks) {
    passes.push(await naming(pipeline, check, () => passOfItsOwn(check, session, condition, window, target)));
  }
  const expected = new Map(
    sumChecks(pipeline).map(({ place, check }) => [place, readableSum(pipeline, check, target, given(sums, place))]),
  );
  const { counts, ...accounts } = await countForChecks(session, condition, pipeline, window.key, target, expected);
  const checks = pipeline.checks.map((check, place): CheckOutcome => {
    const outcome = judge(check, accounts.inside, counts[place] ?? [], passes[place]);
    return { check: checkName(check), ...outcome, ...(check.severity === 'warn' ? { severity: 'warn' } : {}) };
  });
  return { ...accounts, checks };
}

function given(sums: ReadonlyMap<number, string | null>, place: number): string | null {
  const sum = sums.get(place);
  if (sum === undefined) throw new Failure('Unexpected', 'The query of a check of sum was not run with the rows.');
  return sum;
}

/** What a check finds that the common pass cannot count: repeated values, or rows of its query. */
async function passOfItsOwn(
  check: Check,
  session: Session,
  condition: WindowCondition,
  window: Window,
  target: Target,
): Promise<number | undefined> {
  if (check.kind === 'unique') {
    if (target.uniqueKeys.some((key) => key.every((column) => check.columns.includes(column)))) return undefined;
    const [row] = await session.rows<{ groups: number }>(
      `SELECT pg_catalog.count(*)::pg_catalog.float8 AS groups
         FROM (SELECT FROM ${condition.table} WHERE ${condition.condition} GROUP BY ${quotedList(check.columns)} HAVING pg_catalog.count(*) > 1) repeated`,
      condition.values,
    );
    return row?.groups ?? 0;
  }
  if (check.kind === 'sql') {
    const [row] = await session.rows<{ found: number }>(
      foundRows(check.query.text),
      parameterValues(check.query.parameters, window),
    );
    return row?.found ?? 0;
  }
  return undefined;
}

function judge(
  check: Check,
  inside: number,
  counts: readonly (number | null)[],
  found: number | undefined,
): Pick<CheckOutcome, 'passed' | 'seen'> {
  switch (check.kind) {
    case 'rows':
      return { passed: inside >= (check.min ?? 0) && inside <= (check.max ?? Infinity), seen: counted(inside) };
    case 'change':
      return judgeChange(check.maxPercent, inside, counts[0] ?? null);
    case 'not_null':
      return judgeCounts(
        check.columns.map((column, i) => [counts[i] ?? 0, `NULL in ${column}`]),
        'no NULL',
      );
    case 'accepted':
      return judgeCounts([[counts[0] ?? 0, 'not accepted']], 'all accepted');
    case 'range':
      return judgeCounts(
        [
          [counts[0] ?? 0, `below ${check.min}`],
          [counts[1] ?? 0, `above ${check.max}`],
          [counts[2] ?? 0, 'NaN'],
        ],
        'all in range',
      );
    case 'sum':
      return counts[0] === 1
        ? { passed: true, seen: 'equal to its query' }
        : { passed: false, seen: 'not equal to its query' };
    case 'unique':
      if (found === undefined) return { passed: true, seen: 'held by a unique index' };
      return found === 0
        ? { passed: true, seen: 'no repetition' }
        : { passed: false, seen: `${counted(found, 'value')} more than once` };
    case 'sql':
      if (found === 0) return { passed: true, seen: 'no row' };
      return { passed: false, seen: Number(found) > MAX_FOUND ? `more than ${MAX_FOUND} rows` : counted(found ?? 0) };
    default:
      return check satisfies never;
  }
}

function judgeCounts(
  counts: readonly (readonly [count: number, what: string])[],
  none: string,
): Pick<CheckOutcome, 'passed' | 'seen'> {
  const found = counts.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return { passed: found.length === 0, seen: found.join(', ') || none };
}

function judgeChange(maxPercent: number, inside: number, before: number | null): Pick<CheckOutcome, 'passed' | 'seen'> {
  if (before === null) return { passed: true, seen: `${counted(inside)}, no fill before` };
  if (before === 0) return { passed: true, seen: `${counted(inside)}, none before` };
  const percent = (100 * (inside - before)) / before;
  const rounded = Math.round(10 * Math.abs(percent)) / 10;
  const change = percent === 0 ? 'no change' : `${rounded} % ${percent > 0 ? 'more' : 'fewer'}`;
  return { passed: Math.abs(percent) <= maxPercent, seen: `${counted(inside)}, ${before} before: ${change}` };
}

/** The warnings of checks that failed and are let through, since their severity is `warn`. */
export function checkWarnings(checks: readonly CheckOutcome[]): string[] {
  return checks.filter(({ passed, severity }) => !passed && severity === 'warn').map(({ check }) => `check: ${check}`);
}

/** Throws `CheckFailed`, naming every check that failed and is not let through, and what was seen. */
export function refuseFailedChecks(pipeline: Pipeline, key: string, checks: readonly CheckOutcome[]): void {
  const failed = checks.filter(({ passed, severity }) => !passed && severity !== 'warn');
  if (failed.length === 0) return;
  const said = failed.map(({ check, seen }) => `${check}: ${seen}`).join('; ');
  throw new Failure(
    'CheckFailed',
    `The new rows of ${pipeline.name} ${key} do not pass ${failed.length === 1 ? 'the check' : 'the checks'} ${said}. The old rows stand. Mend the source or the check, then fill again.`,
  );
}
