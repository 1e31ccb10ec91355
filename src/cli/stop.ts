import type { Command } from 'commander';
import { addCommand, type CommonOptions, runs, withTemporal } from './command.js';
import { steer } from './steer.js';

/** `repave stop`: a backfill finishes what runs, and ends. */
export function registerStop(program: Command): void {
  const command = addCommand(program, 'stop <backfill>', {
    summary: 'finish what runs, start nothing more, and end',
    examples: ['repave stop sales_summary', 'repave stop backfill/sales_summary/1997-01-01..1997-01-31'],
    after:
      "A backfill's id, or a pipeline's name where one backfill of it runs. Comes back once it is stopping, not once it has\n" +
      'ended: `repave watch` waits for that. `repave cancel` rolls back what runs.',
  });
  withTemporal(command).action(
    runs<readonly [string], CommonOptions>(async (context, [what]) =>
      steer(context, what, {
        lever: 'stop',
        command: (id) => `repave stop ${id}`,
        pull: (handle) => handle.stop(),
        inForce: (id) => `${id} is stopping: what runs is finished, nothing more is started.`,
        next: (id) => `See it end:\n  repave watch ${id}`,
        later: (id) => `${id} stops`,
      }),
    ),
  );
}
