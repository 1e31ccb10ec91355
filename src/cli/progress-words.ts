import type { BackfillCounts, Pause, PausedBy, Progress } from '../contract.js';
import { counted, duration, number } from './format.js';
import { oneLine } from './width.js';

/** How a backfill's progress is said, wherever it is. */

/** Partitions of which nothing is left to do. */
export function doneOf({ filled, failed, skipped }: Pick<BackfillCounts, 'filled' | 'failed' | 'skipped'>): number {
  return filled + failed + skipped;
}

/** The command that lists every failed partition, where only the first are shown. */
export function listAllFailed(pipeline: string): string {
  return `repave plan ${pipeline} --only failed`;
}

/** `150 of 365`, `41 %`. 100 % only when all are done. */
export function shareOf(progress: Progress): string[] {
  const done = doneOf(progress);
  if (progress.total === 0) return [`${number(done)} of 0`];
  return [`${number(done)} of ${number(progress.total)}`, `${Math.floor((100 * done) / progress.total)} %`];
}

/** Rows, rate and time left. What is not known yet is said to be so; nothing is said where nothing is to be expected. */
export function figuresOf(progress: Progress): string[] {
  const { phase, perMinute, secondsLeft, total, rows } = progress;
  const figures = phase === 'planning' ? [] : [counted(rows, 'row')];
  const moves = (phase === 'filling' || phase === 'draining') && doneOf(progress) < total;
  if (!moves || onlyWaits(progress)) return figures;
  if (perMinute !== undefined) figures.push(rateText(perMinute));
  figures.push(
    secondsLeft === undefined
      ? 'time left not yet known'
      : `about ${duration(Math.max(1, Math.round(secondsLeft)))} left`,
  );
  return figures;
}

/** Whether all that is left waits for others, who alone know how long that takes. */
function onlyWaits({ waiting = 0, busy = 0, running, ...progress }: Progress): boolean {
  return waiting + busy > 0 && running.length === 0 && progress.total - doneOf(progress) <= waiting + busy;
}

/** Why the first partition that is not ready is not; undefined where none waits, or that is not known. */
export function notReadyText({ notReady }: Progress): string | undefined {
  return notReady?.reason === undefined ? undefined : `${notReady.key} is not ready: ${oneLine(notReady.reason)}`;
}

/** A rate in the unit that makes it a number to be read. */
function rateText(perMinute: number): string {
  if (perMinute >= 600) return `${number(Math.round(perMinute / 60))} a second`;
  if (perMinute >= 10) return `${number(Math.round(perMinute))} a minute`;
  if (perMinute >= 1) return `${perMinute.toFixed(1)} a minute`;
  return `${(perMinute * 60).toFixed(1)} an hour`;
}

const PAUSED: Readonly<Record<PausedBy, readonly [who: string, why: string]>> = {
  lever: ['paused', ''],
  failures: ['paused itself', 'partitions have failed'],
  canary: ['paused itself after its canary', 'it has failed'],
};

/** Who paused it, when (`when` stands behind the verb: `4 min ago`), and why. */
export function pausedText({ by, reason }: Pause, when: string): string {
  const [who, otherwise] = PAUSED[by];
  const why = oneLine(reason ?? '') || otherwise;
  return why === '' ? `${who} ${when}` : `${who} ${when}: ${why}`;
}

/** What a phase other than filling means; a pause is told by {@link pausedText}. */
export const PHASE_WORDS: Readonly<Record<Exclude<Progress['phase'], 'filling' | 'paused'>, string>> = {
  planning: 'planning',
  stopping: 'stopping: what runs is finished, nothing more is started',
  draining: 'draining: what runs is finished, then it goes on as a new run',
  ended: 'ended',
};

/** That no worker has told, and who has. */
export const UNANSWERED = {
  'no worker polls': 'no worker polls: start one with `repave worker`; the figures are the ledger’s',
  'no worker answers': 'no worker answers: the figures are the ledger’s',
} as const;
