/** Ctrl-C, or a SIGTERM, as the reason of an aborted signal. */
export class Interrupted extends Error {
  override readonly name = 'Interrupted';
}

/**
 * Hands `work` a signal that the first Ctrl-C or SIGTERM aborts, with an {@link Interrupted}; a second one ends the process,
 * as it would without us.
 */
export async function interruptible<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const controller = new AbortController();
  const interrupt = (): void => {
    stop();
    controller.abort(new Interrupted('It was interrupted.'));
  };
  const signals = ['SIGINT', 'SIGTERM'] as const;
  const stop = (): void => signals.forEach((signal) => process.removeListener(signal, interrupt));
  for (const signal of signals) process.on(signal, interrupt);
  try {
    return await work(controller.signal);
  } finally {
    stop();
  }
}
