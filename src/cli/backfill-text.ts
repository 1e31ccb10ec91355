import { temporalServer } from '../temporal/temporal-server.js';
import type { Settings } from '../settings.js';
import type { BackfillState, BackfillView } from './backfill-state.js';
import { ago, counted, instant, number } from './format.js';
import { frame } from './frame.js';
import type { Colors, Output } from './output.js';
import { doneOf, listAllFailed, pausedText } from './progress-words.js';
import { oneLine } from './width.js';

/** Columns in a pipe, where nothing is cut. */
const ENDLESS = 10_000;

/** All of one backfill: how it stands, what runs, what failed, who started it, and what may be done. */
export function backfillText(output: Output, view: BackfillView, settings: Settings): string {
  const { id, outcome, progress, attempts, unanswered } = view;
  const columns = output.interactive ? output.columns - INDENT.length : ENDLESS;
  const options = { columns, rows: Infinity, colors: output.colors, now: Date.now() };
  const body =
    outcome === null && view.state === 'running'
      ? frame({ progress, attempts, unanswered, id }, options).split('\n')
      : endedLines(view);
  return [
    `${output.colors.bold(id)}  ${stateText(view, output.colors)}`,
    ...[...body, ...facts(output, view, settings)].map((line) => INDENT + line),
  ].join('\n');
}

const INDENT = '  ';

function endedLines(view: BackfillView): string[] {
  const { total, filled, failed, skipped, rows, progress, state, pipeline } = view;
  const counts = `${number(filled)} of ${counted(total, 'partition')} filled, ${number(failed)} failed, ${number(skipped)} skipped, ${counted(rows, 'row')}`;
  const failures = progress.failures.map(({ key, type, message }) => `× ${key}  ${type}: ${oneLine(message)}`);
  const more = failed - failures.length;
  return [
    counts,
    ...failures,
    ...(more > 0 ? [`  and ${number(more)} more: ${listAllFailed(pipeline)}`] : []),
    ...(ENDED_WELL.includes(state) ? advice(view) : []),
    ...(STATE_WORDS[state] === undefined ? [] : [`! ${STATE_WORDS[state]}`]),
  ];
}

/** What to do about what an ended backfill has left, and what failed in it. */
function advice(view: BackfillView): string[] {
  const { total, failed, id, pipeline } = view;
  const left = total - doneOf(view);
  const rest =
    left > 0 ? [`stopped with ${number(left)} left: repave plan ${pipeline} --only missing,failed,outdated`] : [];
  if (failed === 0 && left === 0) return [`what depends on it is not all filled: its backfills are ${id}/…`];
  if (failed === 0) return rest;
  return [...rest, `${left > 0 ? 'only' : 'fill'} what failed again: repave retry ${id}`];
}

const ENDED_WELL: readonly BackfillState[] = ['incomplete', 'stopped'];

/** What to know of a run that the ledger has open and that does not live. */
const STATE_WORDS: Readonly<Partial<Record<BackfillState, string>>> = {
  terminated: 'Temporal has ended it; the ledger did not hear of it. What was filled stays filled. Start it again.',
  'timed out':
    'its time-out, set where it was started, is over; the ledger did not hear of it. Start it again without.',
  lost: 'the ledger has it open, and Temporal knows it no more. What was filled stays filled. Start it again.',
  unknown: 'the ledger has it open; whether it still runs is not known',
};

function facts(output: Output, view: BackfillView, settings: Settings): string[] {
  const { id, run, startedAt, startedBy, endedAt, concurrency, lastFillAt, input, state } = view;
  const when = (at: Date): string => (output.interactive ? `${instant(at)} (${ago(at)})` : instant(at));
  const lives = state === 'running';
  const paused = view.progress.phase === 'paused';
  return [
    `started   ${when(startedAt)}${startedBy === null ? '' : ` by ${startedBy}`}`,
    ...(endedAt ? [`ended     ${when(endedAt)}`] : []),
    ...(lastFillAt ? [`last fill ${when(lastFillAt)}`] : []),
    ...(concurrency === null ? [] : [`at once   ${number(concurrency)}`]),
    `input     ${JSON.stringify(input)}`,
    `run       ${run}`,
    ...(settings.dev ? [`page      ${page(settings, id)}`] : []),
    ...(lives ? [`commands  repave watch|${paused ? 'resume' : 'pause'}|stop|cancel ${id}`] : []),
  ];
}

/** Its page in the Temporal UI of a running `repave dev`. */
function page(settings: Settings, id: string): string {
  const { namespace } = temporalServer(settings);
  return `${settings.dev?.temporalUi}/namespaces/${namespace}/workflows/${encodeURIComponent(id)}`;
}

/** How it stands in one word, with its shape: of one that runs, what it does. */
export function stateText({ state, progress }: BackfillView, { blue, green, red, yellow }: Colors): string {
  switch (state) {
    case 'running':
      return progress.phase === 'paused' || progress.phase === 'stopping'
        ? yellow(`‖ ${progress.phase}`)
        : blue(`▓ ${state}`);
    case 'done':
      return green(`✓ ${state}`);
    case 'incomplete':
    case 'failed':
      return red(`× ${state}`);
    case 'terminated':
    case 'timed out':
    case 'lost':
      return red(`! ${state}`);
    case 'stopped':
    case 'cancelled':
      return `■ ${state}`;
    case 'unknown':
      return `? ${state}`;
  }
}

/** Why one of several is to be looked at; empty where it is as it should be. */
export function remarkOf({ state, progress }: BackfillView): string {
  if (state === 'running') return progress.paused ? pausedText(progress.paused, ago(progress.paused.since)) : '';
  return STATE_WORDS[state] ?? '';
}
