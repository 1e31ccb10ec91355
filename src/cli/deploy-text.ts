import type { ScheduleChange } from '../client.js';
import type { Output } from './output.js';
import { scheduleText } from './schedule-text.js';

/** A change of a pipeline's schedules: what comes, what goes, and each field that is to be another. `lookbacks`: by their files. */
export function changeLines(
  change: ScheduleChange,
  { colors }: Pick<Output, 'colors'>,
  lookbacks: ReadonlyMap<string, number>,
): string[] {
  switch (change.kind) {
    case 'added': {
      // None is not worth a word.
      const lookback = change.request.lookback ?? (lookbacks.get(change.pipeline) || undefined);
      return [`${colors.green(`+ ${change.pipeline}`)}  ${scheduleText({ ...change.request, lookback })}`];
    }
    case 'removed':
      return [`${colors.red(`- ${change.pipeline}`)}  ${scheduleText(change.was)}`];
    case 'changed': {
      const width = Math.max(...change.fields.map(({ field }) => field.length));
      return [
        colors.yellow(`~ ${change.pipeline}`),
        ...change.fields.map(({ field, from = 'none', to = 'none' }) => `    ${field.padEnd(width)}  ${from} → ${to}`),
      ];
    }
    default:
      return change satisfies never;
  }
}
