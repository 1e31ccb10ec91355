import { Context } from '@temporalio/activity';
import {
  DEFAULT_CONCURRENCY,
  DEFAULTS,
  healScheduleId,
  MAX_LISTED_KEYS,
  MAX_WAITING_AFTER,
  type BackfillInput,
  type DownstreamResult,
} from '../contract.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { asksSource } from '../plan/asks-source.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { judgePlan } from '../plan/plan-changed.js';
import { type Plan, type PlanEntry, plainRange, resolvePlan } from '../plan/resolve-plan.js';
import type { Span } from '../plan/selection.js';
import { beginBackfill, storeRunKeys } from '../warehouse/backfills.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId } from '../warehouse/ledger.js';
import { partitionStates, type StateRow } from '../warehouse/partition-states.js';
import { restingPartitions } from '../warehouse/resting.js';
import { type ComesAfter, comesAfter } from '../warehouse/upstream.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import { fillPolicy } from './fill-policy.js';
import type { BackfillPlan, DownstreamPipeline, PlanBackfillRequest, PlannedBackfill } from './messages.js';
import { movedOf } from './moved-of.js';
import { firstPage, PAGE_SIZE } from './next-keys.js';
import { downstreamOfPlan } from './plan-downstream.js';
import { passedClock } from './passed-clock.js';
import { planningTimes } from './planning-times.js';
import { requestedPipeline } from './served-pipeline.js';
import { startedBy } from './started-by.js';

/**
 * Judges a backfill's raw input, resolves every setting and fixes its list of partitions. Writes the backfill's row in the
 * ledger, and its keys, page by page, where no range says them; with `dryRun` nothing. A range whose partitions' states do not
 * matter takes no look at them. Throws `InvalidInput` before anything is asked of a database, `UnknownPipeline`,
 * `InvalidPipeline`, `PlanChanged`.
 */
export function planBackfill(deps: ActivityDeps): (request: PlanBackfillRequest) => Promise<PlannedBackfill> {
  const notifies = deps.hooks.length > 0 || undefined;
  const plan = async (request: PlanBackfillRequest): Promise<PlannedBackfill> => {
    const { attempt, workflowExecution } = Context.current().info;
    if (!workflowExecution)
      throw new Failure('InvalidInput', 'planBackfill belongs to the workflow backfill: start that.');
    const run = workflowExecution.runId;
    const [raw, ...extra] = request.arguments;
    const input = parseBackfillInput(raw, isCap(extra[0]) ? extra.slice(1) : extra);
    const pipeline = await requestedPipeline(deps, input.pipeline);
    const asks = asksSource(input, pipeline);
    const clock = await passedClock(request);
    return deps.withDatabase(pipeline, async (database) => {
      const ledger = await ledgerId(database, { orNewer: true });
      const { times, nothing } = await planningTimes(request, input, pipeline, database, clock.now);
      const after = await comesAfter(database, pipeline);
      const walk: Walk = (take) =>
        resolvePlan(
          input,
          pipeline,
          {
            ...times,
            states: (spans) => states(database, pipeline.name, spans, after),
            resting: (failed, tries) => restingPartitions(database, pipeline.name, failed, tries),
            changed: (filled) => movedOf(deps, pipeline, database, filled),
          },
          take,
        );
      const by = await startedBy();
      const settings = {
        ...settingsOf(input, pipeline),
        leavesAfterMs: leavesAfterMs(request, pipeline),
        searchAttributes: (await deps.hasSearchAttributes()) || undefined,
        notifies,
      };
      const policy = { ...fillPolicy(pipeline, ledger), onBusy: input.onBusy, startedBy: by };

      if (input.dryRun) {
        const keys: string[] = [];
        const { id, counts, ...plan } = await judged(input, walk, keepFirst(keys, MAX_LISTED_KEYS));
        const behind = input.downstream ? await downstreamOfPlan(deps, database, plan, { assumed: true }) : undefined;
        const noted = behind ? { ...plan, notes: [...plan.notes, ...behind.notes] } : plan;
        const downstream = behind?.pipelines.map(toBeFilled);
        return {
          plan: { run, policy, ...settings, ...listed(noted, input), dryRun: { keys, plan: id, counts, downstream } },
          keys: [],
        };
      }
      // Each attempt keeps a list of its own: that of an earlier one, whose answer was lost, may say other partitions.
      const name = attempt === 1 ? run : `${run}#${attempt}`;
      const fixed: FixedList =
        (nothing === undefined ? undefined : { total: 0, notes: [nothing] }) ??
        plainRange(input, pipeline, times) ??
        // A list's one walk asks each source once.
        (asks ? undefined : await rangeOf(input, walk)) ??
        (await storedList(database, input, walk, name));
      const list = { ...fixed, notes: [...fixed.notes, ...clock.notes] };
      const plan = { run, policy: { ...policy, backfill: run }, ...settings, ...listed(list, input) };
      const { total, concurrency } = plan;
      await beginBackfill(database, {
        id: request.id,
        run,
        pipeline: pipeline.name,
        input,
        total,
        startedBy: by,
        concurrency,
      });
      return { plan, ...firstPage(pipeline, plan, list.keys) };
    });
  };
  return answering('attempts', plan, { notifies });
}

/** Walks through today's plan in pages. Each time it is walked, it goes by what the ledger says then. */
type Walk = (take?: (page: readonly PlanEntry[]) => Promise<void> | void) => Promise<Plan>;

/** Partitions that are fixed: as a range, or by the name of their list. */
interface FixedList extends Pick<Plan, 'total' | 'first' | 'last' | 'range' | 'resting' | 'notes'> {
  readonly list?: string;
  /** The first page of a list. */
  readonly keys?: readonly string[];
}

/** The plan where a range says it, or where it is empty: then nothing is to be kept. */
async function rangeOf(input: BackfillInput, walk: Walk): Promise<FixedList | undefined> {
  // It has holes, or it would have been plain.
  if (input.only === undefined && input.plan === undefined) return undefined;
  const plan = await judged(input, walk);
  return plan.range || plan.total === 0 ? plan : undefined;
}

/** Keeps the plan's keys in the ledger, in the asked order. The partitions are looked at once more, and that is the plan. */
async function storedList(database: Database, input: BackfillInput, walk: Walk, name: string): Promise<FixedList> {
  const keys: string[] = [];
  const keep = keepFirst(keys, PAGE_SIZE);
  let stored = 0;
  const plan = await judged(input, walk, async (page) => {
    keep(page);
    const more = page.map(({ key }) => key);
    await storeRunKeys(database, name, more, stored);
    stored += more.length;
  });
  return { ...plan, range: undefined, list: name, keys };
}

async function judged(input: BackfillInput, walk: Walk, take?: Parameters<Walk>[0]): Promise<Plan> {
  const plan = await walk(take);
  if (input.plan !== undefined) judgePlan(input.plan, plan);
  return plan;
}

/** Puts the first keys of the pages that it is shown into `keys`. */
function keepFirst(keys: string[], limit: number): (page: readonly PlanEntry[]) => void {
  return (page) => void keys.push(...page.slice(0, Math.max(0, limit - keys.length)).map(({ key }) => key));
}

async function states(
  database: Database,
  pipeline: string,
  spans: readonly Span[],
  after: ComesAfter | undefined,
): Promise<ReadonlyMap<string, StateRow>> {
  Context.current().cancellationSignal.throwIfAborted();
  return partitionStates(database, pipeline, spans, after);
}

/** What the input, the pipeline and the defaults say of a backfill, whatever its partitions. */
function settingsOf(input: BackfillInput, pipeline: Pipeline) {
  return {
    pipeline: pipeline.name,
    concurrency: input.concurrency ?? pipeline.concurrency ?? DEFAULT_CONCURRENCY,
    priority: input.priority ?? DEFAULTS.priority,
    onBusy: input.onBusy ?? 'wait',
    only: input.only,
    batch: pipeline.batch === 1 ? undefined : pipeline.batch,
    asksReady: pipeline.ready || pipeline.after ? true : undefined,
    maxWaiting: pipeline.after ? MAX_WAITING_AFTER : undefined,
    downstream: input.downstream || undefined,
    onFailure: input.onFailure,
    maxFailures: input.maxFailures,
    canary: input.canary,
    tries: input.tries,
  } as const satisfies Partial<BackfillPlan>;
}

/** A heal comes again: it does not hold up the next one for what is not ready. */
function leavesAfterMs({ scheduledBy }: PlanBackfillRequest, { name, ready, after, retry }: Pipeline) {
  if (scheduledBy !== healScheduleId(name) || (!ready && !after)) return undefined;
  return Math.min(DEFAULTS.healWaitsMs, retry.giveUpAfterMs);
}

/** A pipeline of a dry run, as the result lists it. */
function toBeFilled({ pipeline, total, first, last, unserved }: DownstreamPipeline): DownstreamResult {
  return { pipeline, total, filled: 0, failed: 0, skipped: 0, first, last, ...(unserved && { reason: unserved }) };
}

function listed({ total, first, last, notes, range, list, resting }: FixedList, input: BackfillInput) {
  return {
    total,
    first,
    last,
    notes,
    range: range && { ...range, order: input.order ?? 'oldest-first' },
    list,
    resting,
  } as const;
}

/** The one second argument that a first run may have: a cap on the partitions of one run. */
function isCap(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false;
  const { partitionsPerRun, ...rest } = value as Record<string, unknown>;
  return Number.isInteger(partitionsPerRun) && Number(partitionsPerRun) > 0 && Object.keys(rest).length === 0;
}
