import type { Command } from 'commander';
import { MAX_REASON_LENGTH, NOT_IN_A_REASON } from '../contract.js';
import { Failure } from '../failure.js';
import { addCommand, type CommonOptions, runs, withTemporal } from './command.js';
import { EXIT } from './exit.js';
import { withClient } from './temporal-client.js';

/** `repave schedule pause`. */
export function registerSchedulePause(group: Command): void {
  const command = addCommand(group, 'pause <pipeline>', {
    summary: 'start no more scheduled runs and heals of a pipeline',
    examples: ['repave schedule pause sales_summary --reason "the source is moved"'],
    after: 'What runs goes on; `repave pause` pauses a backfill. It stays paused through `repave deploy`.',
  });
  withTemporal(command)
    .option('--reason <text>', `shown by \`repave schedule list\`; at most ${MAX_REASON_LENGTH} characters`)
    .action(
      runs<readonly [string], CommonOptions & { readonly reason?: string }>(
        async ({ settings, output }, [pipeline], { reason }) => {
          const note = reason ?? '';
          if (note.length > MAX_REASON_LENGTH || NOT_IN_A_REASON.test(note)) {
            throw new Failure(
              'InvalidInput',
              `--reason has ${note.length} characters or breaks its line: expected one line of at most ${MAX_REASON_LENGTH}.`,
            );
          }
          await withClient(settings, ({ schedules }) => schedules.pause(pipeline, note || ' '));
          output.document({ pipeline, paused: true, ...(reason === undefined ? {} : { reason }) });
          output.result(`Paused the schedule of ${pipeline}${reason === undefined ? '' : ` (${reason})`}`);
          output.say(`Go on with:\n  repave schedule resume ${pipeline}`);
          return EXIT.done;
        },
      ),
    );
}

/** `repave schedule resume`. */
export function registerScheduleResume(group: Command): void {
  const command = addCommand(group, 'resume <pipeline>', {
    summary: 'start scheduled runs and heals again, from the next time on',
    examples: ['repave schedule resume sales_summary'],
    after:
      'Times that passed while it was paused are not run; the next run fills what was finished since the last one before.',
  });
  withTemporal(command).action(
    runs<readonly [string], CommonOptions>(async ({ settings, output }, [pipeline]) => {
      await withClient(settings, ({ schedules }) => schedules.resume(pipeline));
      output.document({ pipeline, paused: false });
      output.result(`Resumed the schedule of ${pipeline}`);
      output.say(
        `The next run also fills what was finished meanwhile. To have it now:\n  repave backfill ${pipeline} --only missing`,
      );
      return EXIT.done;
    }),
  );
}

/** `repave schedule remove`. */
export function registerScheduleRemove(group: Command): void {
  const command = addCommand(group, 'remove <pipeline>', {
    summary: 'remove the schedules of a pipeline, its heal too',
    examples: ['repave schedule remove sales_summary'],
    after: 'What runs goes on. One that a file asks for comes back with the next `repave deploy --yes`.',
  });
  withTemporal(command).action(
    runs<readonly [string], CommonOptions>(async ({ settings, output }, [pipeline]) => {
      await withClient(settings, ({ schedules }) => schedules.remove(pipeline));
      output.document({ pipeline, removed: true });
      output.result(`Removed the schedule of ${pipeline}`);
      return EXIT.done;
    }),
  );
}
