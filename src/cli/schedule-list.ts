import type { Command } from 'commander';
import { addCommand, type CommonOptions, runs, withTemporal } from './command.js';
import { EXIT } from './exit.js';
import { filesAtHand } from './files-at-hand.js';
import { lookbacksOf } from './lookbacks.js';
import { SCHEDULE_COLUMNS, scheduleLines, scheduleRow } from './schedule-text.js';
import { table } from './table.js';
import { withClient } from './temporal-client.js';

/** `repave schedule list`: the schedules of this task queue, when they are due next, and how their last runs ended. */
export function registerScheduleList(group: Command): void {
  const command = addCommand(group, 'list', {
    summary: 'list schedules: when, next, and how the last run ended',
    examples: ['repave schedule list', 'repave schedule list --json'],
    after: 'Times are in the schedule’s own zone. Temporal may list one that is new or gone a moment late.',
  });
  withTemporal(command).action(
    runs<readonly [], CommonOptions>(async ({ settings, output }) => {
      const listed = await withClient(settings, ({ schedules }) => schedules.list());
      const lookbacks = lookbacksOf((await filesAtHand(settings)).pipelines);
      const seen = listed.map((one) => ({ ...one, lookback: one.lookback ?? lookbacks.get(one.pipeline) }));
      output.document({ schedules: seen });
      if (seen.length === 0) {
        output.say(`No schedules for the task queue ${settings.taskQueue}. Make one with \`repave schedule add\`.`);
        return EXIT.done;
      }
      if (output.interactive) output.result(seen.flatMap((one) => scheduleLines(one, output)).join('\n'));
      else output.result(table(output, SCHEDULE_COLUMNS, seen.map(scheduleRow)));
      return EXIT.done;
    }),
  );
}
