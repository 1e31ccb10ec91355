import type { Command } from 'commander';
import type { RepaveClient } from '../client.js';
import { WORKFLOW_TYPES } from '../contract.js';
import { Failure } from '../failure.js';
import type { Settings } from '../settings.js';
import { readBackfills } from '../warehouse/backfills.js';
import { registeredPipelines } from '../warehouse/ledger.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import type { ExitCode } from './exit.js';
import { follow } from './follow.js';
import { askLedgers, newestFirst } from './ledgers.js';
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
  return withClient(settings, async (repave) => {
    const id = what !== undefined && (await isBackfill(repave, what)) ? what : await openBackfill(settings, what);
    return follow(output, repave, repave.handle(id), { onProgress: (progress) => output.document({ id, progress }) });
  });
}

/** Whether Temporal knows the id as a backfill's: the ledger has it only once a worker has begun it. */
async function isBackfill(repave: RepaveClient, id: string): Promise<boolean> {
  try {
    return (await repave.temporal.workflow.getHandle(id).describe()).type === WORKFLOW_TYPES.backfill;
  } catch (error) {
    if (error instanceof Error && error.name === 'WorkflowNotFoundError') return false;
    throw error;
  }
}

/** The one backfill that the ledgers have open, of a pipeline where one is named. */
async function openBackfill(settings: Settings, what: string | undefined): Promise<string> {
  const found = await askLedgers(settings, async (database) => {
    return {
      backfills: await readBackfills(database, { limit: LOOKED_THROUGH }),
      pipelines: (await registeredPipelines(database)).map(({ name }) => name),
    };
  });
  const rows = newestFirst(found.flatMap(({ backfills }) => backfills));
  const open = rows.filter(({ outcome, pipeline }) => outcome === null && (what === undefined || pipeline === what));
  const ids = [...new Set(open.map(({ id }) => id))];
  const [only, ...more] = ids;
  if (only === undefined) {
    const pipelines = found.flatMap((ledger) => ledger.pipelines);
    throw new Failure('InvalidInput', noneRuns(what, pipelines));
  }
  if (more.length > 0) throw new Failure('InvalidInput', `Several backfills run: name one of ${ids.join(', ')}.`);
  return only;
}

function noneRuns(what: string | undefined, pipelines: readonly string[]): string {
  if (what !== undefined && !pipelines.includes(what)) {
    const known = [...new Set(pipelines)].sort().join(', ') || 'none';
    return `There is no pipeline and no backfill ${JSON.stringify(what)} in the ledger. Its pipelines: ${known}. \`repave status\` lists backfills.`;
  }
  return `No backfill${what === undefined ? '' : ` of ${what}`} runs. \`repave status\` lists those that have ended.`;
}
