import type { Command } from 'commander';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import type { ExitCode } from './exit.js';
import { follow } from './follow.js';
import { namedBackfill } from './open-backfills.js';
import { withClient } from './temporal-client.js';

/** `repave watch`: follows a backfill that runs. */
export function registerWatch(program: Command): void {
  const command = addCommand(program, 'watch [pipeline-or-backfill]', {
    summary: 'follow a backfill that runs',
    examples: ['repave watch', 'repave watch backfill/sales_summary/1997-01-01..1997-01-31 --json'],
    after:
      'Without a name: the one that runs. With --json: one document a line, each time something has changed; the last has the\n' +
      'result or the error. Ctrl-C stops watching, not the backfill. Exits as `repave backfill` does.',
  });
  withTemporal(command).action(runs(watch));
}

async function watch(
  context: Context,
  [what]: readonly [string | undefined],
  _options: CommonOptions,
): Promise<ExitCode> {
  const { settings, output } = context;
  return withClient(settings, async (repave) => {
    const id = await namedBackfill(settings, repave, what, (each) => `repave watch ${each}`);
    return follow(context, repave, repave.handle(id), { onSight: (sight) => output.document(sight) });
  });
}
