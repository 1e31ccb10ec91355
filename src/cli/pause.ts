import type { Command } from 'commander';
import { MAX_REASON_LENGTH } from '../contract.js';
import { addCommand, type CommonOptions, runs, withTemporal } from './command.js';
import { steer } from './steer.js';

interface PauseOptions extends CommonOptions {
  readonly reason?: string;
}

/** `repave pause`: a backfill starts nothing more until it is resumed. */
export function registerPause(program: Command): void {
  const command = addCommand(program, 'pause <backfill>', {
    summary: 'start nothing more; what runs goes on to its end',
    examples: [
      'repave pause sales_summary --reason "the replica lags"',
      'repave pause backfill/sales_summary/1997-01-01..1997-01-31',
    ],
    after:
      "A backfill's id, or a pipeline's name where one backfill of it runs. It stays paused over every restart, until\n" +
      '`repave resume`. Where no worker runs, it is paused as soon as one does.',
  });
  withTemporal(command)
    .option('--reason <text>', `shown wherever the backfill is; at most ${MAX_REASON_LENGTH} characters`)
    .action(
      runs<readonly [string], PauseOptions>(async (context, [what], { reason }) =>
        steer(context, what, {
          lever: 'pause',
          command: (id) => `repave pause ${id}`,
          pull: (handle) => handle.pause(reason),
          inForce: (id, { paused, stopping }) =>
            stopping
              ? `${id} is not paused: it is stopping, and starts nothing more.`
              : `Paused ${id}${paused?.reason === undefined ? '' : ` (${paused.reason})`}: nothing more is started, what runs goes on to its end.`,
          next: (id, { paused }) => paused && `Go on with:\n  repave resume ${id}`,
          later: (id) => `${id} is paused`,
        }),
      ),
    );
}
