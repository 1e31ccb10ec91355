import { Context } from '@temporalio/activity';
import { DEFAULT_CONCURRENCY, DEFAULTS, MAX_LISTED_KEYS, type BackfillInput } from '../contract.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { resolvePlan } from '../plan/resolve-plan.js';
import { beginBackfill, storeRunKeys } from '../warehouse/backfills.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId } from '../warehouse/ledger.js';
import { partitionRows } from '../warehouse/partitions.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { BackfillPlan, Continuation, FillPolicy, PlanBackfillRequest, PlannedBackfill } from './messages.js';
import { PAGE_SIZE } from './next-keys.js';
import { requestedPipeline } from './served-pipeline.js';

/**
 * Judges a backfill's raw input, resolves every setting and fixes its list of partitions. Writes the backfill's row in the
 * ledger, and its keys where no range says them; with `dryRun` nothing. Throws `InvalidInput` before anything is asked of a
 * database, `UnknownPipeline`, `InvalidPipeline`.
 */
export function planBackfill(deps: ActivityDeps): (request: PlanBackfillRequest) => Promise<PlannedBackfill> {
  return answering('attempts', async (request) => {
    const { attempt, workflowExecution } = Context.current().info;
    if (!workflowExecution)
      throw new Failure('InvalidInput', 'planBackfill belongs to the workflow backfill: start that.');
    const run = workflowExecution.runId;
    const [raw, ...extra] = request.arguments;
    const input = parseBackfillInput(raw, isContinuation(extra[0]) ? extra.slice(1) : extra);
    const pipeline = await requestedPipeline(deps, input.pipeline);
    return deps.withDatabase(pipeline, async (database) => {
      const { settings, keys } = await resolved(database, pipeline, input, new Date(request.asOf));
      if (input.dryRun)
        return { plan: { ...settings, run, dryRun: { keys: keys.slice(0, MAX_LISTED_KEYS) } }, keys: [] };
      // Each attempt keeps a list of its own: that of an earlier one, whose answer was lost, may say other partitions.
      const list = settings.range ? undefined : attempt === 1 ? run : `${run}#${attempt}`;
      if (list) await storeRunKeys(database, list, keys);
      await beginBackfill(database, { id: request.id, run, pipeline: pipeline.name, input, total: keys.length });
      return { plan: { ...settings, run, list }, keys: keys.slice(0, PAGE_SIZE) };
    });
  });
}

/** What every fill of a run is bound to. */
export function fillPolicy(pipeline: Pipeline, ledger: string): FillPolicy {
  return {
    ledger,
    fingerprint: pipeline.fingerprint,
    timeoutMs: pipeline.timeoutMs,
    giveUpAfterMs: pipeline.retry.giveUpAfterMs,
  };
}

async function resolved(
  database: Database,
  pipeline: Pipeline,
  input: BackfillInput,
  asOf: Date,
): Promise<{ settings: Omit<BackfillPlan, 'run'>; keys: string[] }> {
  const policy = fillPolicy(pipeline, await ledgerId(database));
  const { entries, first, last, notes, range } = await resolvePlan(input, pipeline, {
    now: new Date(),
    asOf,
    rows: (from, to) => partitionRows(database, pipeline.name, from, to),
  });
  const keys = entries.map(({ key }) => key);
  const settings = {
    pipeline: pipeline.name,
    policy,
    total: keys.length,
    first,
    last,
    notes,
    concurrency: input.concurrency ?? pipeline.concurrency ?? DEFAULT_CONCURRENCY,
    priority: input.priority ?? DEFAULTS.priority,
    onBusy: input.onBusy ?? 'wait',
    only: input.only,
    range: range && { ...range, order: input.order ?? 'oldest-first' },
  } as const;
  return { settings, keys };
}

/** The one second argument that a first run may have: a cap on the partitions of one run. */
function isContinuation(value: unknown): value is Continuation {
  if (typeof value !== 'object' || value === null) return false;
  const { partitionsPerRun, ...rest } = value as Record<string, unknown>;
  return Number.isInteger(partitionsPerRun) && Number(partitionsPerRun) > 0 && Object.keys(rest).length === 0;
}
