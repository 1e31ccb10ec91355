/**
 * Settles as `work` does, or rejects with the signal's reason as soon as that is aborted: `work` goes on by itself, and
 * `unwanted` is told what it came to.
 */
export function abortable<T>(
  work: Promise<T>,
  signal: AbortSignal,
  unwanted: (value: T) => void = () => undefined,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => {
      work.then(unwanted, () => undefined);
      reject(signal.reason as Error);
    };
    if (signal.aborted) {
      onAbort();
      return;
    }
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
