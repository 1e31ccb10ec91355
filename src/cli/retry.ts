import type { Command } from 'commander';
import type { RepaveClient } from '../client.js';
import type { BackfillInput } from '../contract.js';
import { Failure } from '../failure.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { leave } from './backfill.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { EXIT, type ExitCode } from './exit.js';
import { type FailedIn, failedIn } from './failed-in.js';
import { follow } from './follow.js';
import { ledgerOf } from './ledger-progress.js';
import { namedBackfill } from './open-backfills.js';
import type { Output } from './output.js';
import { pullLever, resumeIt } from './steer.js';
import { withClient } from './temporal-client.js';

interface RetryOptions extends CommonOptions {
  readonly detach?: boolean;
}

/** `repave retry`: fills again what has failed in a backfill: in its run while that lives, else by a new one. */
export function registerRetry(program: Command): void {
  const command = addCommand(program, 'retry <backfill>', {
    summary: 'fill again what has failed in a backfill',
    examples: ['repave retry sales_summary', 'repave retry backfill/sales_summary/1997-01-01..1997-01-31 --detach'],
    after:
      "A backfill's id, or a pipeline's name where one backfill of it runs. While it runs, they are filled in its run, behind the\n" +
      'others. Where it has ended, a new backfill of the same partitions is started with `--only failed`, and followed.',
  });
  withTemporal(command).option('--detach', 'where it starts a new backfill: come back at once').action(runs(retry));
}

async function retry(context: Context, [what]: readonly [string], { detach }: RetryOptions): Promise<ExitCode> {
  const { settings, output } = context;
  return withClient(settings, async (repave) => {
    const found = await failedIn(settings, repave, what);
    if (found !== undefined && found !== 'running') return retryByNewOne(context, repave, what, found, detach === true);
    const id = await namedBackfill(settings, repave, what, (each) => `repave retry ${each}`);
    const soFar = await ledgerOf(settings, id)();
    if (soFar?.failed === 0) return tellNone(output, id, 'so far');
    return retryInRun(output, repave, id);
  });
}

async function retryInRun(output: Output, repave: RepaveClient, id: string): Promise<ExitCode> {
  return pullLever(output, repave, id, {
    lever: 'retryFailed',
    pull: (handle) => handle.retryFailed(),
    inForce: (_, { stopping }) =>
      stopping
        ? `${id} is stopping: it fills nothing again. Retry it once it has ended.`
        : `What has failed in ${id} so far is filled again, behind the others.`,
    next: (_, { paused }) => paused && resumeIt(id),
    later: () => `what has failed in ${id} is filled again`,
  });
}

async function retryByNewOne(
  context: Context,
  repave: RepaveClient,
  id: string,
  found: FailedIn,
  detach: boolean,
): Promise<ExitCode> {
  const { output } = context;
  if (found.failed === 0) return tellNone(output, id, `(it has ended: ${found.ended})`);
  const input = failedAgain(id, found);
  const note = `${id} has ended (${found.ended}): what failed in it is filled by a new backfill.`;
  output.say(note);
  const handle = await repave.backfill(input);
  output.say(`${handle.joined ? 'Joined' : 'Started'} ${handle.id}`);
  return detach ? leave(output, repave, handle, [note]) : follow(context, repave, handle, { notes: [note] });
}

/** What another backfill is not asked again: partitions by other words, a plan that is through, a look. */
const NOT_AGAIN = {
  from: undefined,
  to: undefined,
  keys: undefined,
  last: undefined,
  plan: undefined,
  dryRun: undefined,
} as const;

/**
 * The input of a backfill of what has failed in another: its own, with the partitions that it meant then. Throws `InvalidInput`
 * where these are not known, or the input is none.
 */
function failedAgain(id: string, { input, first, last }: FailedIn): BackfillInput {
  const asked = parseBackfillInput(input, []);
  const again = { ...asked, ...NOT_AGAIN, only: ['failed'] } as const;
  const { from, to, keys, pipeline } = asked;
  if (keys) return { ...again, keys };
  if (from !== undefined && to !== undefined) return { ...again, from, to };
  if (first !== undefined && last !== undefined) return { ...again, from: first, to: last };
  throw new Failure(
    'InvalidInput',
    `Which partitions ${id} meant is not known any more. Fill all of the pipeline that have failed:\n  repave backfill ${pipeline} --only failed`,
  );
}

function tellNone(output: Output, id: string, when: string): ExitCode {
  output.document({ id, failed: 0 });
  output.result(`Nothing of ${id} has failed ${when}: there is nothing to fill again.`);
  return EXIT.done;
}
