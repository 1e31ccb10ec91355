import { type Granularity, GRANULARITIES } from '../calendar/calendar.js';
import type { BackfillInput } from '../contract.js';
import { Failure } from '../failure.js';
import { loadPipeline } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { PlannedPipeline } from '../plan/planned-pipeline.js';
import { type Plan, resolvePlan } from '../plan/resolve-plan.js';
import { databaseUrl, type Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId, type RegisteredPipeline, registeredPipelines } from '../warehouse/ledger.js';
import { ledgerState } from '../warehouse/migrate.js';
import { type PartitionRow, partitionRows } from '../warehouse/partitions.js';
import { pipelinesFolder, withDatabaseAt } from './database.js';
import { otherVersion } from './other-version.js';

/** A plan, and the ledger's rows of the partitions it looked at. */
export interface PlannedRequest {
  readonly plan: Plan;
  readonly rows: ReadonlyMap<string, PartitionRow>;
}

/**
 * Plans a request, writing nothing: by the pipeline as workers have registered it in the ledger, so that it is what they
 * would do; by the file here where none has. Throws what reading the file, opening the database and planning throw.
 */
export async function planRequest(settings: Settings, input: BackfillInput): Promise<PlannedRequest> {
  const file = await fileOrReason(settings, input.pipeline);
  let answered = false;
  try {
    return await withDatabaseAt(urlOf(settings, file), (database) => {
      answered = true;
      return planIn(database, input, file);
    });
  } catch (error) {
    // A wrong key is wrong whether or not a database answers.
    if (!answered && !(file instanceof Failure)) await resolvePlan(input, file, { now: new Date(), rows: noRows });
    throw error;
  }
}

async function planIn(database: Database, input: BackfillInput, file: Pipeline | Failure): Promise<PlannedRequest> {
  const registered = await registeredIn(database, input.pipeline);
  if (file instanceof Failure) {
    if (registered === undefined || registered === 'no ledger') throw file;
    return plan(database, input, plannedAs(registered));
  }
  if (registered === 'no ledger') {
    const bare = await resolvePlan(input, file, { now: new Date(), rows: noRows });
    return noted({ plan: bare, rows: new Map() }, 'This database has no ledger yet: `repave migrate` makes it.');
  }
  if (registered === undefined) return plan(database, input, file);
  // Whatever workers have registered is what they would do; the lookback alone is not in the ledger.
  const planned = await plan(database, input, { ...plannedAs(registered), lookback: file.lookback });
  const other = otherVersion(file, registered);
  return other === undefined ? planned : noted(planned, `${other} The plan goes by theirs.`);
}

const noRows = (): Promise<ReadonlyMap<string, PartitionRow>> => Promise.resolve(new Map());

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
  const found = await registeredIn(database, name);
  return found === undefined || found === 'no ledger' ? found : plannedAs(found);
}

async function registeredIn(database: Database, name: string): Promise<RegisteredPipeline | 'no ledger' | undefined> {
  if ((await ledgerState(database)) === 'missing') return 'no ledger';
  await ledgerId(database);
  return (await registeredPipelines(database)).find((pipeline) => pipeline.name === name);
}

function plannedAs(registered: RegisteredPipeline): PlannedPipeline {
  const { name, column, by, zone, start, fingerprint } = registered;
  if (!isGranularity(by)) {
    throw new Failure(
      'InvalidInput',
      `The ledger has ${name} by ${by}, which this version does not know. Upgrade Repave here.`,
    );
  }
  return { name, partition: { column, by, zone }, start: start ?? undefined, lookback: 0, fingerprint };
}

/** Whether a granularity that the ledger holds is one that this version knows. */
export function isGranularity(by: string): by is Granularity {
  return (GRANULARITIES as readonly string[]).includes(by);
}

async function plan(database: Database, input: BackfillInput, pipeline: PlannedPipeline): Promise<PlannedRequest> {
  let rows: ReadonlyMap<string, PartitionRow> = new Map();
  const resolved = await resolvePlan(input, pipeline, {
    now: new Date(),
    rows: async (from, to) => (rows = await partitionRows(database, pipeline.name, from, to)),
  });
  return { plan: resolved, rows };
}

function noted({ plan, rows }: PlannedRequest, note: string): PlannedRequest {
  return { plan: { ...plan, notes: [...plan.notes, note] }, rows };
}
