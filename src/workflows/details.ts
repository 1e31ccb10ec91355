import type { Progress } from '../contract.js';

/** Children that are named. */
const NAMED = 10;
/** Characters of any text of the outside that are kept: all of them together stay far below the server's 20,000 bytes. */
const MAX_TEXT = 200;
const MAX_NAME = 60;
const MAX_REASON = 300;

/** A backfill's current details, as Temporal's UI shows them: a small table in Markdown, below the server's limit of 20,000 bytes. */
export function currentDetails(progress: Progress): string {
  const { pipeline, first, last, total, filled, failed, skipped, rows, phase, concurrency, running } = progress;
  const range = first === undefined ? (phase === 'planning' ? '' : ', nothing to fill') : `, ${first} to ${last}`;
  const left = total - filled - failed - skipped;
  const { paused, waiting, notReady, busy, downstream, failures } = progress;
  return [
    `**${text(pipeline)}**${text(range)} (${phase})`,
    '',
    '| partitions | filled | failed | skipped | left | rows | at once | per minute | time left |',
    '| --- | --- | --- | --- | --- | --- | --- | --- | --- |',
    row([total, filled, failed, skipped, left, rows, concurrency ?? '', ...pace(progress)]),
    ...(paused
      ? [
          '',
          '| paused by | since | reason |',
          '| --- | --- | --- |',
          row([paused.by, paused.since, text(paused.reason ?? '')]),
        ]
      : []),
    ...(running.length > 0 ? ['', `Filling: ${names(running.map(({ keys }) => keys))}`] : []),
    ...(waiting ? ['', `Not ready yet, to be tried again: ${waiting}`] : []),
    ...(notReady?.reason === undefined
      ? []
      : ['', `First of them ${text(notReady.key, MAX_NAME)}: ${text(notReady.reason, MAX_REASON)}`]),
    ...(downstream === undefined ? [] : ['', `Filling what depends on it: ${text(downstream)}`]),
    ...(busy ? ['', `Filled by other runs, which are waited for: ${busy}`] : []),
    ...(failures.length > 0 ? ['', '| failed | type | message |', '| --- | --- | --- |'] : []),
    ...failures.map(({ key, type, message }) => row([text(key, MAX_NAME), text(type, MAX_NAME), text(message)])),
  ].join('\n');
}

function pace({ perMinute, secondsLeft }: Progress): string[] {
  if (perMinute === undefined) return ['not yet known', 'not yet known'];
  return [String(perMinute), secondsLeft === undefined ? '' : duration(secondsLeft)];
}

function duration(seconds: number): string {
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

function names(keys: readonly string[]): string {
  return text(keys.slice(0, NAMED).join(', ')) + (keys.length > NAMED ? `, and ${keys.length - NAMED} more` : '');
}

function row(cells: readonly (string | number)[]): string {
  return `| ${cells.join(' | ')} |`;
}

/** A text as one cell of a table: what would end the cell or begin another element is escaped. */
function text(given: string, max = MAX_TEXT): string {
  const short = given.length <= max ? given : `${given.slice(0, max - 1)}…`;
  return short.replace(/[\\|`<]/g, '\\$&').replace(/\s+/g, ' ');
}
