import { newestFinished } from '../calendar/range.js';
import { wallTime } from '../calendar/zone.js';
import type { BackfillInput } from '../contract.js';
import type { PlannedPipeline } from './planned-pipeline.js';

/** When a schedule was to run before, and the zone in which it reads its times. */
export interface TimeBefore {
  readonly at: Date;
  readonly zone: string;
}

/**
 * Why a schedule's run, of a request by `last` and due at a time, has nothing to fill; undefined where it has. That is so before
 * the pipeline's first partition is finished; and where the zone's clock went back and shows the time of the run before once
 * more, with no partition finished in between: so 01:30 fires twice in autumn, and fills once. A schedule that runs several
 * times a day by its own cron fills each time.
 */
export function nothingDue(
  { last, only, includeUnfinished }: Pick<BackfillInput, 'last' | 'only' | 'includeUnfinished'>,
  { name, partition, start }: PlannedPipeline,
  at: Date,
  before: TimeBefore | undefined,
): string | undefined {
  if (last === undefined || includeUnfinished) return undefined;
  const newest = newestFinished(partition, at.toISOString());
  if (start !== undefined && newest < start) {
    return `Nothing is due: ${name} begins with ${start}, which was not finished at ${at.toISOString()}.`;
  }
  if (!before || only || newestFinished(partition, before.at.toISOString()) < newest) return undefined;
  if (!sameReading(before.zone, before.at, at)) return undefined;
  return (
    `Nothing is due: the clock of ${before.zone} went back, so this is the time of the run of ${before.at.toISOString()} once more, ` +
    'and no partition was finished since.'
  );
}

function sameReading(zone: string, one: Date, other: Date): boolean {
  try {
    return wallTime(zone, one.getTime()) === wallTime(zone, other.getTime());
  } catch (error) {
    // A zone that Temporal's server has data for and this process has none.
    if (error instanceof RangeError) return false;
    throw error;
  }
}
