import { windowOf } from '../calendar/window.js';
import type { FailureType } from '../contract.js';
import { Failure } from '../failure.js';
import type { ChangedFunction, ChangedQuery, Pipeline, SqlPipeline, TypeScriptPipeline } from '../pipeline/pipeline.js';
import { askSource } from './ask-source.js';
import { codeVersion } from './code-version.js';
import type { Database } from './database.js';
import { withDeadline } from './deadline.js';
import type { StateRow } from './partition-states.js';
import { askVersion, judgedVersion } from './version-query.js';

/** Partitions asked of in one transaction: others wait for its connection. */
const TURN_KEYS = 200;
/** Milliseconds after which a transaction asks of no more. */
const TURN_MS = 3_000;

/** A partition, and the version of its source when it was filled. */
type Filled = Pick<StateRow, 'key' | 'sourceVersion'>;

interface Asked {
  readonly moved: Set<string>;
  /** Partitions of which there was an answer. */
  answered: number;
  /** Why there was none of the first that had none. */
  refusal?: Failure;
}

/** What may be wrong with one partition's source alone. */
const OF_ONE: ReadonlySet<FailureType> = new Set(['InvalidPipeline', 'DataError', 'SourceFailed']);

/**
 * Of some filled partitions those whose source has another version now, by the pipeline's `changed`. What is not known is never
 * called unchanged: so are all without `changed`; those of which no version is known, since they were filled before the pipeline
 * had it; and those that it cannot say one of while it can of others, whose fill then says why. Asks one partition after the
 * other, of the source alone: there is no lock and no transaction on the target.
 *
 * Throws as a fill does that asks, naming the partition; the signal's reason once that is aborted.
 */
export async function movedPartitions(
  {
    database,
    source,
    signal,
  }: { readonly database: Database; readonly source?: Database; readonly signal: AbortSignal },
  pipeline: Pipeline,
  filled: readonly Filled[],
): Promise<ReadonlySet<string>> {
  const known = filled.filter(({ sourceVersion }) => sourceVersion !== null && pipeline.changed);
  const unknown = filled.filter(({ sourceVersion }) => sourceVersion === null || !pipeline.changed);
  const asked: Asked = { moved: new Set(unknown.map(({ key }) => key)), answered: 0 };
  if (pipeline.kind === 'sql' && pipeline.changed) {
    const asking = { database, source, signal, applicationName: 'repave plan', timeLeftMs: pipeline.timeoutMs };
    for (let next = 0; next < known.length;)
      next += await takeTurn(asking, pipeline, pipeline.changed, known.slice(next), asked);
  }
  if (pipeline.kind === 'typescript' && pipeline.changed) {
    for (const row of known) await judge(asked, row, versionNow(pipeline, pipeline.changed, row, signal));
  }
  // Then it is no matter of one partition, and filling them all would end no better.
  if (asked.answered === 0 && asked.refusal) throw asked.refusal;
  return asked.moved;
}

/** Asks of as many as one transaction may, and says of how many. */
async function takeTurn(
  asking: Parameters<typeof askSource>[0],
  pipeline: SqlPipeline,
  changed: ChangedQuery,
  known: readonly Filled[],
  asked: Asked,
): Promise<number> {
  return askSource(asking, pipeline, 'changed', async (session) => {
    const until = performance.now() + TURN_MS;
    const query = await judgedVersion(session, pipeline.name, changed);
    let turn = 0;
    for (const row of known.slice(0, TURN_KEYS)) {
      const answer = await judge(asked, row, askVersion(session, query, windowOf(pipeline.partition, row.key)));
      turn++;
      // What the server has refused has aborted the transaction.
      if (answer === 'none' || performance.now() > until) break;
    }
    return turn;
  });
}

/** Takes in what is said of one partition. Throws what is no matter of that one. */
async function judge(asked: Asked, { key, sourceVersion }: Filled, version: Promise<string>): Promise<'one' | 'none'> {
  try {
    if ((await version) !== sourceVersion) asked.moved.add(key);
    asked.answered += 1;
    return 'one';
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const named = new Failure(error.type, `${error.message} Asked of ${key}.`, error.options);
    if (!OF_ONE.has(error.type)) throw named;
    asked.moved.add(key);
    asked.refusal ??= named;
    return 'none';
  }
}

async function versionNow(
  pipeline: TypeScriptPipeline,
  changed: ChangedFunction,
  { key }: Filled,
  signal: AbortSignal,
): Promise<string> {
  const request = { pipeline, window: windowOf(pipeline.partition, key), timeLeftMs: pipeline.timeoutMs, signal };
  return withDeadline(request, (limited) => codeVersion(pipeline, changed, limited.window, limited.signal));
}
