import type { Command } from 'commander';
import type { RepaveClient } from '../client.js';
import { WORKFLOW_TYPES } from '../contract.js';
import { Failure } from '../failure.js';
import type { Settings } from '../settings.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { EXIT, type ExitCode, exitCodeOf } from './exit.js';
import { isBackfillFailed } from './follow.js';
import { isUnknown, openBackfills } from './open-backfills.js';
import type { Output } from './output.js';
import { sayIfNoWorker, withClient } from './temporal-client.js';

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
    const state = await stateOf(repave, id).catch(async (error: unknown) => {
      throw (isUnknown(error) ? await namesPipeline(settings, repave, id) : undefined) ?? error;
    });
    if (state !== 'RUNNING') return tellEnded(output, id, state);
    const handle = repave.handle(id);
    try {
      await handle.cancel();
    } catch (error) {
      // It ended since it was described.
      if (!hasEnded(error)) throw error;
      return tellEnded(output, id, await stateOf(repave, id));
    }
    if (options.detach) {
      output.document({ id });
      output.result(`Asked ${id} to end.`);
      return EXIT.done;
    }
    output.say(`Asked ${id} to end; waiting for its fills to be rolled back.`);
    const stopLooking = sayIfNoWorker(output, repave);
    const ended = await handle
      .result()
      .then(
        () => 'Completed',
        (error: unknown) => {
          if (isBackfillFailed(error)) return error.type;
          throw error;
        },
      )
      .finally(stopLooking);
    output.document({ id, ended });
    if (ended === 'Cancelled') {
      output.result(`${id} is cancelled: what was filled stays filled, nothing of it runs.`);
      return EXIT.done;
    }
    output.result(`${id} has ended, but not by the cancel: ${ended}.`);
    return ended === 'Completed' ? EXIT.done : exitCodeOf(ended);
  });
}

/** The state of the id's newest run, in Temporal's word. Throws `InvalidInput` for a workflow that is none of Repave's. */
async function stateOf(repave: RepaveClient, id: string): Promise<string> {
  const { type, status } = await repave.temporal.workflow.getHandle(id).describe();
  if (!Object.values<string>(WORKFLOW_TYPES).includes(type)) {
    throw new Failure(
      'InvalidInput',
      `${id} is a workflow of type ${type}, none of Repave's: expected a backfill's or a partition's id. \`repave status\` lists them.`,
    );
  }
  return status.name;
}

/** What to say where a pipeline's name was given for an id; undefined where it is none. What cannot be undone is asked for by id. */
async function namesPipeline(settings: Settings, repave: RepaveClient, name: string): Promise<Failure | undefined> {
  const { ids, pipelines } = await openBackfills(settings, repave, name);
  if (ids.length === 0 && !pipelines.includes(name)) return undefined;
  const expected = `${name} is a pipeline: expected the id of a backfill.`;
  if (ids.length === 0) return new Failure('InvalidInput', `${expected} None of ${name} runs.`);
  const commands = ids.map((id) => `  repave cancel ${id}`);
  return new Failure('InvalidInput', [`${expected} Those of ${name} that run end by:`, ...commands].join('\n'));
}

/** A cancel that comes too late has nothing to do. */
function tellEnded(output: Output, id: string, state: string): ExitCode {
  const ended = state.toLowerCase();
  output.document({ id, ended: 'before', state: ended });
  output.result(`${id} has ended as ${ended}: there is nothing to cancel.`);
  return EXIT.done;
}

/** Temporal's words for a run that is there and over; one that never was has others. */
function hasEnded(error: unknown): boolean {
  return (
    error instanceof Error && error.name === 'WorkflowNotFoundError' && error.message.includes('already completed')
  );
}
