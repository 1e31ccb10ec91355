import type { Window } from '../calendar/calendar.js';
import type { ChangedQuery } from '../pipeline/pipeline.js';
import { parameterValues } from './parameter-values.js';
import { refuseVersionless } from './row-tables.js';
import type { Session } from './session.js';
import { namingSetting, refusedSetting } from './setting-failure.js';
import { versionText } from './version-text.js';

/** A pipeline's `changed` as the server where it runs has judged it. */
export interface VersionQuery {
  readonly pipeline: string;
  readonly changed: ChangedQuery;
  /** Whether the version names the server's cluster and timeline. */
  readonly namesCluster: boolean;
}

/**
 * Which server counts its transactions, and since when: another cluster, or one that has gone on from a copy or a backup, gives
 * numbers out again that rows here have. https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-CONTROLDATA
 */
const CLUSTER = `(SELECT system_identifier FROM pg_catalog.pg_control_system()) || '/' || (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()) || ' '`;
const MAY_NAME_CLUSTER = `SELECT pg_catalog.has_function_privilege('pg_catalog.pg_control_system()', 'EXECUTE')
                             AND pg_catalog.has_function_privilege('pg_catalog.pg_control_checkpoint()', 'EXECUTE') AS may`;

/**
 * Has the server where it runs judge a pipeline's `changed`: by parsing alone, and for `rows` by its catalog. Throws
 * `InvalidPipeline` where that gives another number of columns than one, or counts what has no versions of rows; what the server
 * says of it, as a `Failure` that names the setting.
 */
export async function judgedVersion(session: Session, pipeline: string, changed: ChangedQuery): Promise<VersionQuery> {
  await refuseVersionless(session, pipeline, changed);
  const columns = await namingSetting(pipeline, 'changed', () => session.describe(changed.query.text), {
    beforeRows: true,
  });
  if (columns.length !== 1)
    throw refusedSetting(
      pipeline,
      'changed',
      `gives ${columns.length} columns: expected one value, such as SELECT max(…)`,
    );
  if (!changed.tables) return { pipeline, changed, namesCluster: false };
  const [cluster] = await session.rows<{ may: boolean }>(MAY_NAME_CLUSTER);
  return { pipeline, changed, namesCluster: cluster?.may ?? false };
}

/**
 * SQL of one value, which stands in any statement: what `changed` gives as an array of texts, at most two, since the second is
 * one too many. `text` is its query, with the statement's numbers of parameters.
 */
export function versionAnswers({ namesCluster }: VersionQuery, text: string): string {
  return `ARRAY(SELECT ${namesCluster ? CLUSTER + '|| ' : ''}version::pg_catalog.text FROM (\n${text}\n) AS asked (version) LIMIT 2)`;
}

/** The version, of what {@link versionAnswers} gave; no row is NULL, as in a scalar subquery. Throws `InvalidPipeline` for several. */
export function readVersion({ pipeline, changed }: VersionQuery, answers: readonly (string | null)[]): string {
  if (answers.length > 1) throw refusedSetting(pipeline, 'changed', 'gives more than one row: expected one value');
  return `${versionText(answers[0] ?? null)} by ${changed.hash}`;
}

/** Asks for the version of a window's source. Throws as {@link readVersion}; what the server says of it, as a `Failure` that names the setting. */
export async function askVersion(session: Session, asked: VersionQuery, window: Window): Promise<string> {
  const { text, parameters } = asked.changed.query;
  const [row] = await namingSetting(asked.pipeline, 'changed', () =>
    session.rows<{ answers: readonly (string | null)[] }>(
      `SELECT ${versionAnswers(asked, text)} AS answers`,
      parameterValues(parameters, window),
    ),
  );
  return readVersion(asked, row?.answers ?? []);
}
