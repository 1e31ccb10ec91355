import type { Command } from 'commander';
import { addCommand, type CommonOptions, runs, withTemporal } from './command.js';
import { steer } from './steer.js';

/** `repave resume`: a paused backfill goes on where it was. */
export function registerResume(program: Command): void {
  const command = addCommand(program, 'resume <backfill>', {
    summary: 'go on with a paused backfill, where it was',
    examples: ['repave resume sales_summary', 'repave resume backfill/sales_summary/1997-01-01..1997-01-31'],
    after:
      "A backfill's id, or a pipeline's name where one backfill of it runs. One that paused itself counts failures anew;\n" +
      'what failed before is filled again by `repave retry`.',
  });
  withTemporal(command).action(
    runs<readonly [string], CommonOptions>(async (context, [what]) =>
      steer(context, what, {
        lever: 'resume',
        command: (id) => `repave resume ${id}`,
        pull: (handle) => handle.resume(),
        inForce: (id, { concurrency, stopping }) =>
          stopping
            ? `${id} does not go on: it is stopping, and starts nothing more.`
            : `${id} goes on, ${concurrency} at once.`,
        later: (id) => `${id} goes on`,
      }),
    ),
  );
}
