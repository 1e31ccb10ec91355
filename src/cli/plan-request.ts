import { type BackfillInput, DEFAULT_CONCURRENCY } from '../contract.js';
import { Failure } from '../failure.js';
import { loadPipeline, loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { type DownstreamPlan, planDownstream } from '../plan/downstream.js';
import type { PlannedPipeline } from '../plan/planned-pipeline.js';
import { type Plan, type PlanEntry, plainRange, resolvePlan } from '../plan/resolve-plan.js';
import type { Span } from '../plan/selection.js';
import { unregisteredDownstream } from '../plan/unregistered.js';
import { databaseUrl, type Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { type FillPace, fillPace } from '../warehouse/fill-pace.js';
import { ledgerId, type RegisteredPipeline, registeredPipelines } from '../warehouse/ledger.js';
import { ledgerState } from '../warehouse/migrate.js';
import { partitionStates } from '../warehouse/partition-states.js';
import { otherGrid } from '../warehouse/registered-grid.js';
import { comesAfterOf, gridOf } from '../warehouse/upstream.js';
import { restingPartitions } from '../warehouse/resting.js';
import { type AskedSource, askedSource } from './asked-source.js';
import { pipelinesFolder, withDatabaseAt } from './database.js';
import { otherVersion } from './other-version.js';
import { WaitsFor } from './waits-for.js';

/** A plan, and what is known of how long it takes. */
export interface PlannedRequest {
  readonly plan: Plan;
  /** Absent where no fill of the pipeline is in the ledger yet. */
  readonly pace?: FillPace;
  /** Partitions at once in a backfill that asks for no other number. */
  readonly concurrency: number;
  /** Where the request asks for it: what is filled then, in its order. */
  readonly downstream?: readonly DownstreamPlan[];
}

/** Said of what comes after a pipeline, of which the ledger knows nothing. */
const UNREGISTERED =
  'no worker has registered it yet. One tries again when this is filled; `repave check` says what stands in the way.';

type TakePage = (page: readonly PlanEntry[]) => Promise<void> | void;

/**
 * Plans a request, writing nothing: by the pipeline as workers have registered it in the ledger, so that it is what they
 * would do; by the file here where none has. Hands the partitions to `take` page by page. Throws what reading the file, opening
 * the database and planning throw.
 */
export async function planRequest(settings: Settings, input: BackfillInput, take: TakePage): Promise<PlannedRequest> {
  const file = await fileOrReason(settings, input.pipeline);
  const asked = askedSource(settings, input, file);
  const files = input.downstream ? await filesBeside(settings, file) : [];
  let answered = false;
  try {
    return await withDatabaseAt(urlOf(settings, file), (database) => {
      answered = true;
      return planIn(database, input, file, asked, take, files);
    });
  } catch (error) {
    // A wrong key is wrong whether or not a database answers.
    if (!answered && !(file instanceof Failure)) plainRange(input, file, { now: new Date() });
    throw error;
  }
}

async function planIn(
  database: Database,
  input: BackfillInput,
  file: Pipeline | Failure,
  asked: AskedSource | undefined,
  take: TakePage,
  unregistered: readonly Pipeline[],
): Promise<PlannedRequest> {
  const registry = await registryOf(database);
  const now = new Date();
  if (registry === 'no ledger') {
    if (file instanceof Failure) throw file;
    const bare = await resolvePlan(input, file, { now, states: () => Promise.resolve(new Map()) }, take);
    return {
      plan: noted(bare, 'This database has no ledger yet: `repave migrate` makes it.'),
      concurrency: file.concurrency ?? DEFAULT_CONCURRENCY,
    };
  }
  const registered = registry.find(({ name }) => name === input.pipeline);
  const pipeline = plannedBy(file, registered);
  if (asked && !(file instanceof Failure) && !isSameCalendar(file.partition, pipeline.partition)) throw otherGrid(file);
  const after = comesAfterOf(pipeline.partition, pipeline.after ?? [], registry);
  const states = (spans: readonly Span[]) => partitionStates(database, pipeline.name, spans, after);
  const resting = (failed: readonly string[], tries: number) =>
    restingPartitions(database, pipeline.name, failed, tries);
  const waits = new WaitsFor(database, registry, pipeline, input.includeUnfinished ? now : undefined);
  const taken: TakePage = async (page) => {
    await waits.take(page);
    await take(page);
  };
  const bare = await resolvePlan(input, pipeline, { now, states, resting, changed: asked?.(database) }, taken);
  const plan = waits.note === undefined ? bare : noted(bare, waits.note);
  const other = registered && !(file instanceof Failure) ? otherVersion(file, registered) : undefined;
  const byFile = asked ? ' What has changed at the source was asked as this file says.' : '';
  return {
    plan: other === undefined ? plan : noted(plan, `${other} The plan goes by theirs.${byFile}`),
    pace: await fillPace(database, pipeline.name),
    concurrency: (file instanceof Failure ? undefined : file.concurrency) ?? DEFAULT_CONCURRENCY,
    ...(input.downstream ? { downstream: await downstreamOf(database, registry, plan, now, unregistered) } : {}),
  };
}

/** The project's pipelines in the database of one of them: those that workers have not registered are found nowhere else. */
async function filesBeside(settings: Settings, file: Pipeline | Failure): Promise<Pipeline[]> {
  if (file instanceof Failure) return [];
  const { pipelines } = await loadPipelines(pipelinesFolder(settings));
  return [...pipelines.values()].filter(({ database }) => database === file.database);
}

/** Whether keys are of the same windows: the source is asked by the file's. */
function isSameCalendar(a: Pipeline['partition'], b: Pipeline['partition']): boolean {
  return a.by === b.by && a.zone === b.zone;
}

async function downstreamOf(
  database: Database,
  registered: readonly RegisteredPipeline[],
  { pipeline, first, last }: Plan,
  now: Date,
  unregistered: readonly Pipeline[],
): Promise<readonly DownstreamPlan[]> {
  if (first === undefined || last === undefined) return [];
  const unserved = unregisteredDownstream(pipeline, registered, unregistered).map(({ name, after = [] }) => {
    return { pipeline: name, after, total: 0, ranges: [], notes: [], unserved: UNREGISTERED };
  });
  const plans = await planDownstream(database, registered, pipeline, { from: first, to: last }, { now, assumed: true });
  return [...unserved, ...plans];
}

/** Whatever workers have registered is what they would do; the lookback alone is not in the ledger. */
function plannedBy(file: Pipeline | Failure, registered: RegisteredPipeline | undefined): PlannedPipeline {
  if (file instanceof Failure) {
    if (registered === undefined) throw file;
    return plannedAs(registered);
  }
  return registered === undefined ? file : { ...plannedAs(registered), lookback: file.lookback };
}

/** The pipeline's file, or why there is none: whoever only looks may have no files at hand. Throws where it is broken. */
export async function fileOrReason(settings: Settings, name: string): Promise<Pipeline | Failure> {
  try {
    return await loadPipeline(pipelinesFolder(settings), name);
  } catch (error) {
    if (error instanceof Failure && error.type !== 'InvalidPipeline') return error;
    throw error;
  }
}

/** The URL of a file's database; without a file the project's own. Throws why there is no file where neither is named. */
export function urlOf(settings: Settings, file: Pipeline | Failure): string {
  if (!(file instanceof Failure)) return databaseUrl(settings, file.database);
  if (!settings.env.DATABASE_URL && !settings.dev) throw file;
  return databaseUrl(settings);
}

/** The pipeline as workers have registered it; undefined where none has. */
export async function registeredAs(
  database: Database,
  name: string,
): Promise<PlannedPipeline | 'no ledger' | undefined> {
  const registry = await registryOf(database);
  if (registry === 'no ledger') return registry;
  const found = registry.find((pipeline) => pipeline.name === name);
  return found && plannedAs(found);
}

async function registryOf(database: Database): Promise<readonly RegisteredPipeline[] | 'no ledger'> {
  if ((await ledgerState(database)) === 'missing') return 'no ledger';
  await ledgerId(database);
  return registeredPipelines(database);
}

function plannedAs(registered: RegisteredPipeline): PlannedPipeline {
  const { name, column, start, fingerprint, after } = registered;
  const partition = { column, ...gridOf(registered) };
  return { name, partition, start: start ?? undefined, lookback: 0, fingerprint, after };
}

function noted(plan: Plan, note: string): Plan {
  return { ...plan, notes: [...plan.notes, note] };
}
