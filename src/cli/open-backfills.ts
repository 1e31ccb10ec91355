import type { RepaveClient } from '../client.js';
import { scheduledWorkflowId, WORKFLOW_TYPES } from '../contract.js';
import { Failure } from '../failure.js';
import type { Settings } from '../settings.js';
import { readBackfills } from '../warehouse/backfills.js';
import { registeredPipelines } from '../warehouse/ledger.js';
import { askLedgers, newestFirst } from './ledgers.js';

/** Backfills looked through for those that are open, in a ledger and in Temporal. */
const LOOKED_THROUGH = 50;

/** The workflow id of a schedule's heal, as `scheduledRunId` makes it. */
const HEAL_ID = new RegExp(`^${scheduledWorkflowId('.+', 'heal')}-\\d{4}-`);

/** Backfills that run. */
export interface OpenBackfills {
  /** Their ids, the newest first. */
  readonly ids: readonly string[];
  /** Those of them that heal by a schedule, and have not begun: they wait for the day's run. */
  readonly waiting: readonly string[];
  /** Names of every pipeline that the ledgers know. */
  readonly pipelines: readonly string[];
  /** Why the ledgers were not asked. */
  readonly unasked?: Failure;
}

/**
 * The id of the backfill that a command was given: by its id, whether it runs or has ended; by the name of a pipeline of which
 * exactly one backfill runs, beside heals that wait for it; or, given nothing, the one that runs. Throws `InvalidInput` where none or several are meant, with
 * what `command` makes of each.
 */
export async function namedBackfill(
  settings: Settings,
  repave: RepaveClient,
  what: string | undefined,
  command: (id: string) => string,
): Promise<string> {
  const type = what === undefined ? undefined : await workflowType(repave, what);
  if (what !== undefined && type === WORKFLOW_TYPES.backfill) return what;
  const open = await openBackfills(settings, repave, what);
  const begun = open.ids.filter((id) => !open.waiting.includes(id));
  // Beside another one, a heal that only waits for it is not what anybody means.
  const [only, ...more] = begun.length > 0 ? begun : open.ids;
  if (only !== undefined && more.length === 0) return only;
  if (only === undefined) throw new Failure('InvalidInput', noneRuns(what, type, open));
  const commands = [only, ...more].map((id) => `  ${command(id)}`);
  throw new Failure(
    'InvalidInput',
    [`Several backfills${what === undefined ? '' : ` of ${what}`} run: name one.`, ...commands].join('\n'),
  );
}

/**
 * The backfills that run, of a pipeline where one is named: those that the ledgers have open, and those that no worker has begun
 * yet, of which Temporal alone knows.
 */
export async function openBackfills(
  settings: Settings,
  repave: RepaveClient,
  pipeline: string | undefined,
): Promise<OpenBackfills> {
  const recorded = await recordedAsOpen(settings, pipeline);
  const ids = [...new Set([...recorded.ids, ...(await listedAsRunning(repave, pipeline))])];
  // Neither hears of every end at once.
  const running = await Promise.all(ids.map((id) => runs(repave, id)));
  const waiting = ids.filter((id) => HEAL_ID.test(id) && !recorded.ids.includes(id));
  return { ...recorded, waiting, ids: ids.filter((_, index) => running[index]) };
}

async function recordedAsOpen(
  settings: Settings,
  pipeline: string | undefined,
): Promise<Omit<OpenBackfills, 'waiting'>> {
  try {
    const found = await askLedgers(settings, async (database) => ({
      backfills: await readBackfills(database, { pipeline, open: true, limit: LOOKED_THROUGH }),
      pipelines: (await registeredPipelines(database)).map(({ name }) => name),
    }));
    const open = newestFirst(found.flatMap(({ backfills }) => backfills));
    return { ids: open.map(({ id }) => id), pipelines: found.flatMap(({ pipelines }) => pipelines) };
  } catch (error) {
    // Who steers may have no database at hand.
    if (error instanceof Failure) return { ids: [], pipelines: [], unasked: error };
    throw error;
  }
}

/** Ids of the backfills that Temporal lists as running, of a pipeline where one is named; its list may lag behind. */
export async function listedAsRunning({ temporal }: RepaveClient, pipeline: string | undefined): Promise<string[]> {
  const query = `WorkflowType = '${WORKFLOW_TYPES.backfill}' AND ExecutionStatus = 'Running'`;
  const ids: string[] = [];
  let looked = 0;
  for await (const { workflowId, memo } of temporal.workflow.list({ query, pageSize: LOOKED_THROUGH })) {
    const input = memo?.repaveInput as { readonly pipeline?: unknown; readonly dryRun?: unknown } | undefined;
    if (input && !input.dryRun && (pipeline === undefined || input.pipeline === pipeline)) ids.push(workflowId);
    if (++looked === LOOKED_THROUGH) break;
  }
  return ids;
}

async function runs({ temporal }: RepaveClient, id: string): Promise<boolean> {
  try {
    return (await temporal.workflow.getHandle(id).describe()).status.name === 'RUNNING';
  } catch (error) {
    if (isUnknown(error)) return false;
    throw error;
  }
}

/** The type of the workflow that Temporal has under an id; undefined where it has none. */
async function workflowType({ temporal }: RepaveClient, id: string): Promise<string | undefined> {
  try {
    return (await temporal.workflow.getHandle(id).describe()).type;
  } catch (error) {
    if (isUnknown(error)) return undefined;
    throw error;
  }
}

/** By name: the client's module is loaded only where it is needed. */
export function isUnknown(error: unknown): boolean {
  return error instanceof Error && error.name === 'WorkflowNotFoundError';
}

function noneRuns(what: string | undefined, type: string | undefined, { pipelines, unasked }: OpenBackfills): string {
  if (what === undefined) return 'No backfill runs. `repave status` lists those that have ended.';
  if (pipelines.includes(what))
    return `No backfill of ${what} runs. \`repave status ${what}\` lists those that have ended.`;
  if (type !== undefined)
    return `${what} is a workflow of type ${type}: expected a backfill's id, or a pipeline's name.`;
  const name = JSON.stringify(what);
  if (unasked)
    return `Temporal runs no backfill ${name}, nor one of such a pipeline. No ledger was asked: ${unasked.message}`;
  const known = [...new Set(pipelines)].sort().join(', ') || 'none';
  return `There is no pipeline and no backfill ${name} in the ledger. Its pipelines: ${known}. \`repave status\` lists backfills.`;
}
