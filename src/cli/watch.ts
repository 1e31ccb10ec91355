import type { Command } from 'commander';
import { Failure } from '../failure.js';
import type { Settings } from '../settings.js';
import { readBackfills } from '../warehouse/backfills.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import type { ExitCode } from './exit.js';
import { follow } from './follow.js';
import { askLedgers } from './ledgers.js';
import { withClient } from './temporal-client.js';

/** Backfills looked through for one that is open. */
const LOOKED_THROUGH = 50;

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
  { settings, output }: Context,
  [what]: readonly [string | undefined],
  _options: CommonOptions,
): Promise<ExitCode> {
  const id = what?.startsWith('backfill/') ? what : await openBackfill(settings, what);
  return withClient(settings, (repave) =>
    follow(output, repave, repave.handle(id), { onProgress: (progress) => output.document({ id, progress }) }),
  );
}

/** The one backfill that the ledger has open; a name may be a pipeline's, or an id of the caller's own making. */
async function openBackfill(settings: Settings, what: string | undefined): Promise<string> {
  const found = await askLedgers(settings, (database) => readBackfills(database, { limit: LOOKED_THROUGH }));
  const rows = found.flat();
  if (what !== undefined && rows.some(({ id }) => id === what)) return what;
  const open = rows.filter(({ outcome, pipeline }) => outcome === null && (what === undefined || pipeline === what));
  const ids = [...new Set(open.map(({ id }) => id))];
  const [only, ...more] = ids;
  if (only === undefined) {
    throw new Failure(
      'InvalidInput',
      `No backfill${what === undefined ? '' : ` of ${what}`} runs. \`repave status\` lists those that have ended.`,
    );
  }
  if (more.length > 0) throw new Failure('InvalidInput', `Several backfills run: name one of ${ids.join(', ')}.`);
  return only;
}
