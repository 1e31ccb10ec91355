import type { Granularity } from '../calendar/calendar.js';
import { bindParameters, UnboundQuery } from './bind-parameters.js';
import { queryHash, tokenTexts } from './fingerprint.js';
import { judgeQuery } from './judge-query.js';
import type { ChangedQuery, Check, ParameterName, Query, ReadyQuery, TableName } from './pipeline.js';
import { type OwnQuery, rowVersions } from './row-versions.js';
import type { ShapeProblem } from './shape.js';
import { sqlTokens } from './sql-tokens.js';

type Path = readonly PropertyKey[];

/** A check as the settings say it: its queries as text, with the place of its entry. */
export type WrittenCheck = { readonly path?: Path } & (
  | Exclude<Check, { readonly kind: 'sum' | 'sql' }>
  | (Omit<Extract<Check, { readonly kind: 'sum' }>, 'equals'> & { readonly equals: string })
  | (Omit<Extract<Check, { readonly kind: 'sql' }>, 'query'> & { readonly query: string })
);

/** The setting `ready` as a SQL file says it. */
export interface WrittenReady {
  readonly sql: string;
  readonly path: Path;
  readonly retryAfterMs: number;
}

/** What the queries of settings are read for. */
export interface QuerySetting {
  readonly by: Granularity;
  /** The pipeline's own query, whose parameters those of a `sum` count on behind. Absent: TypeScript. */
  readonly query?: Query;
}

/** The checks with their queries judged and bound, or what is wrong with them. */
export async function readChecks(
  written: readonly WrittenCheck[],
  setting: QuerySetting,
): Promise<{
  readonly checks: readonly Check[];
  /** Where each check is written. */
  readonly paths: readonly Path[];
  readonly problems: readonly ShapeProblem[];
}> {
  const checks: Check[] = [];
  const paths: Path[] = [];
  const problems: ShapeProblem[] = [];
  let behind = setting.query?.parameters ?? [];
  for (const { path = [], ...check } of written) {
    if (check.kind === 'sum') {
      const place = [...path, 'sum', check.column];
      if (!setting.query) {
        problems.push({
          path: place,
          message:
            'sum compares with a query over the source of a SQL pipeline: in TypeScript use sql, or compare in rows().',
        });
        continue;
      }
      const equals = await readQuery(check.equals, place, 'sum', setting.by, problems, behind);
      if (!equals) continue;
      behind = equals.parameters;
      checks.push({ ...check, equals });
      paths.push(place);
    } else if (check.kind === 'sql') {
      const query = await readQuery(check.query, [...path, 'sql'], 'sql', setting.by, problems);
      if (!query) continue;
      checks.push({ ...check, query });
      paths.push(path);
    } else {
      checks.push(check);
      paths.push(path);
    }
  }
  return { checks, paths, problems };
}

/** The setting `ready` with its query judged and bound, or what is wrong with it. */
export async function readReady(
  { sql, path, retryAfterMs }: WrittenReady,
  setting: QuerySetting,
): Promise<{ readonly ready?: ReadyQuery; readonly problems: readonly ShapeProblem[] }> {
  const problems: ShapeProblem[] = [];
  const query = await readQuery(sql, path, 'ready', setting.by, problems);
  return { ready: query && { query, retryAfterMs }, problems };
}

/**
 * The setting `changed`, `rows` or a query, as what is to be asked, or what is wrong with it. It is asked as the rows are written,
 * so that it must not read the `target`: absent where it runs elsewhere.
 */
export async function readChanged(
  written: string,
  by: Granularity,
  own: OwnQuery,
  target: TableName | undefined,
): Promise<{ readonly changed?: ChangedQuery; readonly problems: readonly ShapeProblem[] }> {
  const path = ['changed'];
  if (written.trim() === 'rows') {
    const read = await rowVersions(own, by);
    return 'problem' in read ? { problems: [{ path, message: read.problem }] } : { ...read, problems: [] };
  }
  const problems: ShapeProblem[] = [];
  const query = await readQuery(written, path, 'changed', by, problems, [], target);
  return { changed: query && { query, hash: queryHash(tokenTexts(sqlTokens(written))) }, problems };
}

/** Without `forbidden` a query may read the target: it runs before its rows are deleted, or after the new ones are there. */
async function readQuery(
  text: string,
  path: Path,
  name: string,
  by: Granularity,
  problems: ShapeProblem[],
  behind: readonly ParameterName[] = [],
  forbidden?: TableName,
): Promise<Query | undefined> {
  try {
    const query = bindParameters(text, sqlTokens(text), by, behind);
    const judgement = await judgeQuery(query.text, forbidden);
    if (judgement.problems.length === 0) return query;
    problems.push(...judgement.problems.map(({ message }) => ({ path, message: `${name}: ${message}` })));
  } catch (error) {
    if (!(error instanceof UnboundQuery)) throw error;
    problems.push(...error.problems.map(({ message }) => ({ path, message: `${name}: ${message}` })));
  }
  return undefined;
}
