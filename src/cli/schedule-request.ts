import type { Keeper, ScheduleRequest } from '../client.js';
import type { Pipeline, PipelineSchedule } from '../pipeline/pipeline.js';

/** A pipeline's schedule as Temporal is asked for it. */
export function scheduleRequest(
  { name, changed }: Pick<Pipeline, 'name' | 'changed'>,
  schedule: PipelineSchedule,
  keeper: Keeper,
  ledger?: string,
): ScheduleRequest {
  return {
    pipeline: name,
    ...schedule,
    healsChanged: changed !== undefined,
    keeper,
    ...(ledger !== undefined && { ledger }),
  };
}
