import type { Command } from 'commander';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { EXIT, type ExitCode, exitCodeOf } from './exit.js';
import { withClient } from './temporal-client.js';

interface CancelOptions extends CommonOptions {
  readonly detach?: boolean;
}

/** `repave cancel`: ends a backfill. It has ended once every fill of it is rolled back and no query of it is left. */
export function registerCancel(program: Command): void {
  const command = addCommand(program, 'cancel <backfill>', {
    summary: 'end a backfill; what runs is rolled back',
    examples: ['repave cancel backfill/sales_summary/1997-01-01..1997-01-31'],
    after: '`repave status` lists the ids. Waits until no query of the backfill is left; --detach does not.',
  });
  withTemporal(command).option('--detach', 'ask for the cancel and come back at once').action(runs(cancel));
}

async function cancel(
  { settings, output }: Context,
  [id]: readonly [string],
  options: CancelOptions,
): Promise<ExitCode> {
  return withClient(settings, async (repave) => {
    const handle = repave.handle(id);
    try {
      await handle.cancel();
    } catch (error) {
      if (!hasEnded(error)) throw error;
      output.document({ id, ended: 'before' });
      output.result(`${id} had ended before.`);
      return EXIT.done;
    }
    if (options.detach) {
      output.document({ id });
      output.result(`Asked ${id} to end.`);
      return EXIT.done;
    }
    output.say(`Asked ${id} to end; waiting for its fills to be rolled back.`);
    const ended = await handle.result().then(
      () => 'Completed',
      (error: unknown) => {
        if (error instanceof Error && error.name === 'BackfillFailed') return (error as Error & { type: string }).type;
        throw error;
      },
    );
    output.document({ id, ended });
    if (ended === 'Cancelled') {
      output.result(`${id} is cancelled: what was filled stays filled, nothing of it runs.`);
      return EXIT.done;
    }
    output.result(`${id} has ended, but not by the cancel: ${ended}.`);
    return ended === 'Completed' ? EXIT.done : exitCodeOf(ended);
  });
}

/** Temporal's words for a run that is there and over; one that never was has others. */
function hasEnded(error: unknown): boolean {
  return (
    error instanceof Error && error.name === 'WorkflowNotFoundError' && error.message.includes('already completed')
  );
}
