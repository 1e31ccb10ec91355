import { DEFAULTS } from '../contract.js';
import { Failure } from '../failure.js';
import { durationMs, DURATION_FORM } from '../pipeline/duration.js';
import type { ReadyFunction, ReadyQuery, SqlPipeline, TypeScriptPipeline } from '../pipeline/pipeline.js';
import { askCode } from './ask-code.js';
import { askSource } from './ask-source.js';
import { attemptName } from './attempt-name.js';
import type { Database } from './database.js';
import type { FillRequest } from './fill-request.js';
import { parameterValues } from './parameter-values.js';
import { namingSetting, refusedSetting } from './setting-failure.js';

/** The driver's number of the type boolean. */
const BOOLEAN = 16;

/**
 * Asks the pipeline's `ready`, where it has one, whether the window's source is there: a query where the pipeline's own query
 * runs, in a read-only transaction, or the pipeline's function. The target has no lock and no transaction of ours meanwhile.
 *
 * Throws `SourceNotReady` with the delay after which it is to be asked again; `InvalidPipeline` for an answer that is none;
 * `SourceFailed` where the function throws; what the server says of the query. `request.signal` ends it.
 */
export async function refuseNotReady(database: Database, request: FillRequest, fence: number): Promise<void> {
  const { pipeline } = request;
  if (!pipeline.ready) return;
  request.onStep?.('ready', 0);
  const retryAfterMs =
    pipeline.kind === 'sql'
      ? await askQuery(database, request, pipeline, pipeline.ready, fence)
      : await askFunction(request, pipeline, pipeline.ready);
  if (retryAfterMs === undefined) return;
  throw new Failure(
    'SourceNotReady',
    `\`ready\` of ${pipeline.name} says that the source of ${request.window.key} is not there yet.`,
    { retryAfterMs },
  );
}

/** Undefined where the query gives true, else the delay. */
async function askQuery(
  database: Database,
  request: FillRequest,
  pipeline: SqlPipeline,
  { query, retryAfterMs }: ReadyQuery,
  fence: number,
): Promise<number | undefined> {
  const { name } = pipeline;
  const asking = { ...request, database, applicationName: attemptName(request.owner, fence) };
  return askSource(asking, pipeline, 'ready', async (session) => {
    // A query with its condition forgotten would give every row there is.
    const text = `SELECT * FROM (\n${query.text}\n) AS ready LIMIT 2`;
    const { rows, fields } = await namingSetting(name, 'ready', () =>
      session.query<Record<string, unknown>>(text, parameterValues(query.parameters, request.window)),
    );
    const [field] = fields;
    if (fields.length !== 1 || field?.dataTypeID !== BOOLEAN) {
      const given = fields.length === 1 ? 'a column of another type' : `${fields.length} columns`;
      throw refusedSetting(name, 'ready', `gives ${given}: expected one column of type boolean`);
    }
    if (rows.length > 1) throw refusedSetting(name, 'ready', 'gives more than one row: expected one');
    return rows[0]?.[field.name] === true ? undefined : retryAfterMs;
  });
}

/** Undefined where the function returns true, else the delay. */
async function askFunction(
  { window, signal }: FillRequest,
  { name }: TypeScriptPipeline,
  ready: ReadyFunction,
): Promise<number | undefined> {
  return delayOf(name, await askCode(ready, 'ready()', { pipeline: name, window, signal }));
}

function delayOf(pipeline: string, answer: unknown): number | undefined {
  if (answer === true) return undefined;
  if (answer === false) return DEFAULTS.readyRetryMs;
  const delay = typeof answer === 'string' ? durationMs(answer) : undefined;
  if (delay !== undefined) return delay;
  throw refusedSetting(
    pipeline,
    'ready',
    `gives ${typeof answer === 'string' ? 'a text that is no duration' : `a value of type ${typeof answer}`}: expected true, false or ${DURATION_FORM}`,
  );
}
