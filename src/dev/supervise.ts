import { ServerUnreachable } from '../temporal/server-unreachable.js';
import { logTail } from './log-tail.js';

/** Something that runs and has to be stopped: a server, a worker. */
export interface Part {
  readonly name: string;
  /** Resolves when it has ended, to how it ended. */
  readonly ended: Promise<string>;
  readonly logFile?: string;
  /** Ends it; `hard` at once, without its clean-up. May be called twice. Never rejects. */
  stop(hard: boolean): Promise<void>;
}

export interface Supervisor {
  /** Takes charge of a part. That it ends before it is stopped breaks the whole. */
  add(part: Part): void;
}

/** Milliseconds within which signals are one. */
const SAME_MS = 300;
const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Runs `use` and then stops every part it added, the last one first, however it ended. Returns its value, or the signal
 * that cut it short; a second signal stops the parts hard. Throws what `use` throws, `ServerUnreachable` where a part ended
 * by itself.
 */
export async function supervise<T>(
  use: (supervisor: Supervisor) => Promise<T>,
  onStop: (signal: NodeJS.Signals | undefined) => void = () => undefined,
): Promise<{ readonly value: T } | { readonly signal: NodeJS.Signals }> {
  const parts: Part[] = [];
  let stopping = false;
  let hard = false;
  const interrupted = deferred<{ signal: NodeJS.Signals }>();
  const broken = deferred<never>();
  let firstAt: number | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (firstAt === undefined) {
      firstAt = performance.now();
      if (!stopping) onStop(signal);
      interrupted.resolve({ signal });
      return;
    }
    // A terminal signals us and npm, and npm hands its own on: that is still the first Ctrl-C.
    if (performance.now() - firstAt < SAME_MS) return;
    hard = true;
    for (const part of parts) void part.stop(true);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  const add = (part: Part): void => {
    // What was still being started when the stop came.
    if (stopping) void part.stop(true);
    parts.push(part);
    void part.ended.then((how) => {
      if (!stopping) broken.reject(endedByItself(part, how));
    });
  };
  try {
    const used = use({ add }).then((value) => ({ value }));
    return await Promise.race([used, interrupted.promise, broken.promise]);
  } finally {
    stopping = true;
    for (const part of parts.toReversed()) await part.stop(hard);
    for (const signal of SIGNALS) process.off(signal, onSignal);
  }
}

function endedByItself({ name, logFile }: Part, how: string): ServerUnreachable {
  return new ServerUnreachable(
    `${name} ended by itself (${how}).${logFile ? ` Its log, ${logFile}, ends with:\n${logTail(logFile)}` : ''}`,
  );
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: Error): void;
}

function deferred<T>(): Deferred<T> {
  let resolve: (value: T) => void = () => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  // It may be settled with nobody waiting any more.
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}
