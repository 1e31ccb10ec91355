import { isGranularity } from '../calendar/calendar.js';
import { nextKey } from '../calendar/range.js';
import { windowOf } from '../calendar/window.js';
import { Failure } from '../failure.js';
import { DURATION_FORM, durationMs } from '../pipeline/duration.js';
import type { Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { type RegisteredPipeline, registeredPipelines } from '../warehouse/ledger.js';
import { newestFilled } from '../warehouse/newest-filled.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted, duration } from './format.js';
import { askLedgers } from './ledgers.js';
import type { Output } from './output.js';
import { unregisteredPipelines, unregisteredText } from './unregistered.js';

/** How a pipeline stands in time. */
interface Staleness {
  readonly name: string;
  /** The newest partition that is filled or outdated; null where there is none. */
  readonly newest: string | null;
  /** The one behind it, which is to be filled next; where nothing is filled the first one that there can be. Null: not known. */
  readonly due: string | null;
  /** When that ends, or has ended. */
  readonly dueEnd: string | null;
  /** Seconds by which it ended longer ago than is allowed; absent where the pipeline is not behind. */
  readonly behindSeconds?: number;
}

/**
 * `repave status --stale 6h`: whether pipelines are behind, for a monitor. The ledger alone is asked, so that it answers at once
 * while Temporal is down. Exits with 1 where one is behind, or no worker has registered one of the project's files. Throws `InvalidInput` for what is no duration, and for a pipeline that
 * no ledger has.
 */
export async function tellStale(
  settings: Settings,
  output: Output,
  what: string | undefined,
  stale: string,
  now = new Date(),
): Promise<ExitCode> {
  const allowedMs = durationMs(stale);
  if (allowedMs === undefined) {
    throw new Failure('InvalidInput', `--stale is ${JSON.stringify(stale)}: it takes ${DURATION_FORM}.`);
  }
  const asked = await askLedgers(settings, (database) => look(database, what, now.getTime() - allowedMs));
  const pipelines = asked.flat();
  if (what !== undefined && pipelines.length === 0) {
    throw new Failure(
      'InvalidInput',
      `The ledger knows no pipeline ${JSON.stringify(what)}. Workers register pipelines when they start; \`repave status\` lists all.`,
    );
  }
  const unregistered = what === undefined ? await unregisteredPipelines(settings, pipelines) : [];
  const behind = pipelines.filter(({ behindSeconds }) => behindSeconds !== undefined);
  const unknown = pipelines.filter(({ due }) => due === null);
  output.document({ stale, behind: behind.length, pipelines, unregistered });
  for (const view of behind) output.result(`${output.colors.red('✗')} ${sentence(view, allowedMs)}`);
  if (unregistered.length > 0) output.result(`${output.colors.red('✗')} ${unregisteredText(unregistered)}`);
  if (behind.length === 0 && pipelines.length > unknown.length) {
    const known = counted(pipelines.length - unknown.length, 'pipeline');
    output.result(`${output.colors.green('✓')} ${known}: none is more than ${stale} behind`);
  }
  for (const { name } of unknown) output.say(`${name} has no start, and nothing of it is filled: nothing to go by.`);
  if (pipelines.length === 0) output.say('Workers register pipelines when they start: `repave worker`.');
  return behind.length + unregistered.length > 0 ? EXIT.notWhole : EXIT.done;
}

async function look(database: Database, what: string | undefined, dueMs: number): Promise<Staleness[]> {
  const registered = (await registeredPipelines(database)).filter(({ name }) => what === undefined || name === what);
  const views: Staleness[] = [];
  for (const pipeline of registered) views.push(await staleness(database, pipeline, dueMs));
  return views;
}

async function staleness(
  database: Database,
  { name, by, zone, start }: RegisteredPipeline,
  dueMs: number,
): Promise<Staleness> {
  if (!isGranularity(by)) return { name, newest: null, due: null, dueEnd: null };
  const grid = { by, zone };
  const newest = await newestFilled(database, name, grid, start);
  // A month that is not over yet is no reason to be behind, however long ago the last one ended.
  const due = newest ? nextKey(grid, newest.key) : start;
  const dueEnd = due === null ? null : windowOf(grid, due).end;
  const overdue = dueEnd === null ? 0 : (dueMs - Date.parse(dueEnd)) / 1000;
  return {
    name,
    newest: newest?.key ?? null,
    due,
    dueEnd,
    ...(overdue > 0 ? { behindSeconds: Math.round(overdue) } : {}),
  };
}

function sentence({ name, newest, due, behindSeconds = 0 }: Staleness, allowedMs: number): string {
  const ended = `ended ${lasted(behindSeconds + allowedMs / 1000)} ago`;
  const what =
    newest === null
      ? `nothing of it is filled, and its first partition ${ended}`
      : `${due} is not filled, and ${ended}; the newest one that is filled is ${newest}`;
  return `${name} is ${lasted(behindSeconds)} behind: ${what}`;
}

const DAY_S = 86_400;

/** Seconds as {@link duration} says them; those of more than two days in days and hours. */
function lasted(seconds: number): string {
  if (seconds < 2 * DAY_S) return duration(seconds);
  const hours = Math.floor((seconds % DAY_S) / 3600);
  return `${Math.floor(seconds / DAY_S)} d${hours > 0 ? ` ${hours} h` : ''}`;
}
