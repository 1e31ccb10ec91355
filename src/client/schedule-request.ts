import { type ScheduleOptions, ScheduleOverlapPolicy } from '@temporalio/client';
import {
  type BackfillInput,
  DEFAULTS,
  healScheduleId,
  scheduledWorkflowId,
  scheduleId,
  type SelectableState,
  WORKFLOW_TYPES,
} from '../contract.js';
import { backfillMemo } from './input-memo.js';
import { memoFor } from './start-or-join.js';

/** What keeps a pipeline's schedules: `deploy` by the pipeline's file, or a person by `repave schedule add`. */
export const KEEPERS = ['deploy', 'schedule add'] as const;
export type Keeper = (typeof KEEPERS)[number];

/** When a pipeline is to be filled and healed. */
export interface ScheduleRequest {
  readonly pipeline: string;
  /** Five fields, as in crontab(5). */
  readonly cron: string;
  readonly zone: string;
  /** Partitions that each run fills. */
  readonly last: number;
  /** Absent: the pipeline's own, whenever a run is planned. */
  readonly lookback?: number;
  /** Partitions that each heal looks at. Absent: there is no heal. */
  readonly heal?: number;
  /** The pipeline says how its source has changed: the heal looks for that too. */
  readonly healsChanged: boolean;
  readonly keeper: Keeper;
  /** Id of the ledger that its runs are recorded in, by which `deploy` tells a project's schedules from others'. Absent: not known. */
  readonly ledger?: string;
}

/** Where a schedule's action says which of ours it is. */
export const KEEPER_FIELD = 'repaveKeeper';

/** Where it says for which ledger it was made. */
export const LEDGER_FIELD = 'repaveLedger';

export const DAY_MS = 86_400_000;
const HEALED: readonly SelectableState[] = ['missing', 'failed', 'outdated'];

/**
 * The schedule that fills. Runs may overlap (`ALLOW_ALL`): under Temporal's default, `SKIP`, the five times that an outage has
 * missed come to one run, and each has dates of its own. What was missed for 30 days is caught up with; a longer outage is no
 * surprise to anybody, and is a backfill. A failed run never pauses it, or one bad date would end all that follow.
 */
export function dayOptions(request: ScheduleRequest, taskQueue: string): ScheduleOptions {
  const { pipeline, last, lookback } = request;
  return options(request, taskQueue, {
    id: scheduleId(pipeline),
    workflowId: scheduledWorkflowId(pipeline, 'scheduled'),
    input: { pipeline, last, ...(lookback === undefined ? {} : { lookback }), priority: DEFAULTS.schedulePriority },
    summary: `${pipeline} last ${last}, by schedule`,
    overlap: ScheduleOverlapPolicy.ALLOW_ALL,
    catchupWindow: 30 * DAY_MS,
  });
}

/**
 * The schedule that heals; undefined where the request has none. Two heals at once would look at the same partitions, and one
 * that comes later sees nearly all that the one before it would have: so one waits at most, the first that was due (`BUFFER_ONE`),
 * and those of more than a day ago are not caught up with. It looks at the last `heal` partitions and no `lookback` before them.
 */
export function healOptions(request: ScheduleRequest, taskQueue: string): ScheduleOptions | undefined {
  const { pipeline, heal, healsChanged } = request;
  if (heal === undefined) return undefined;
  return options(request, taskQueue, {
    id: healScheduleId(pipeline),
    workflowId: scheduledWorkflowId(pipeline, 'heal'),
    input: {
      pipeline,
      last: heal,
      lookback: 0,
      only: healsChanged ? [...HEALED, 'changed'] : HEALED,
      tries: DEFAULTS.healTries,
      order: 'oldest-first',
      priority: DEFAULTS.healPriority,
    },
    summary: `${pipeline} heals its last ${heal}, by schedule`,
    overlap: ScheduleOverlapPolicy.BUFFER_ONE,
    catchupWindow: DAY_MS,
  });
}

interface Own {
  readonly id: string;
  readonly workflowId: string;
  readonly input: BackfillInput;
  readonly summary: string;
  readonly overlap: ScheduleOverlapPolicy;
  readonly catchupWindow: number;
}

function options(
  { cron, zone, keeper, ledger }: ScheduleRequest,
  taskQueue: string,
  { id, workflowId, input, summary, overlap, catchupWindow }: Own,
): ScheduleOptions {
  // The type of an action leaves its priority out, which the client sends all the same.
  const action = {
    type: 'startWorkflow' as const,
    workflowType: WORKFLOW_TYPES.backfill,
    workflowId,
    taskQueue,
    args: [input],
    memo: {
      ...memoFor(backfillMemo(input)),
      [KEEPER_FIELD]: keeper,
      ...(ledger === undefined ? {} : { [LEDGER_FIELD]: ledger }),
    },
    staticSummary: summary,
    priority: { priorityKey: input.priority },
  };
  return {
    scheduleId: id,
    // Temporal keeps a cron as a calendar, and what follows the # as that one's comment: so it can be read again.
    spec: { cronExpressions: [`${cron} # ${cron}`], timezone: zone },
    action,
    policies: { overlap, catchupWindow, pauseOnFailure: false },
  };
}
