import type { BackfillHandle, Pulled, RepaveClient } from '../client.js';
import type { Lever, Steered } from '../contract.js';
import type { Context } from './command.js';
import { EXIT, type ExitCode } from './exit.js';
import { namedBackfill } from './open-backfills.js';
import type { Output } from './output.js';
import { noWorker, withClient } from './temporal-client.js';

/** What a command that pulls a lever does, and says of it. */
export interface Steering {
  readonly lever: Lever;
  readonly pull: (handle: BackfillHandle) => Promise<Pulled>;
  /** What is in force now, in one line. */
  readonly inForce: (id: string, steered: Steered) => string;
  /** Where to go from there. Absent: nowhere. */
  readonly next?: (id: string, steered: Steered) => string | undefined;
  /** What will be in force: `… is paused`. */
  readonly later: (id: string) => string;
}

/** Said of a backfill that is paused, whatever else was changed. */
export function resumeIt(id: string): string {
  return `It is paused. Go on with:\n  repave resume ${id}`;
}

/** Pulls a lever of the backfill that was named, by its id or its pipeline, and says what is in force. */
export async function steer(
  { settings, output }: Context,
  what: string,
  { command, ...steering }: Steering & { readonly command: (id: string) => string },
): Promise<ExitCode> {
  return withClient(settings, async (repave) => {
    const id = await namedBackfill(settings, repave, what, command);
    return pullLever(output, repave, id, steering);
  });
}

/** The same, of a backfill's id. */
export async function pullLever(
  output: Output,
  repave: RepaveClient,
  id: string,
  { lever, pull, inForce, next, later }: Steering,
): Promise<ExitCode> {
  const pulled = await pull(repave.handle(id));
  output.document({ id, lever, ...pulled });
  if (pulled.sent === 'signal') {
    output.result(`No worker has answered within 5 s. Temporal keeps it: ${later(id)} once one runs.`);
    output.say((await noWorker(repave)) ?? `See how it stands:\n  repave status ${id}`);
    return EXIT.done;
  }
  output.result(inForce(id, pulled.steered));
  const more = next?.(id, pulled.steered);
  if (more !== undefined) output.say(more);
  return EXIT.done;
}
