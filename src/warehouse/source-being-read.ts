import { AsyncLocalStorage } from 'node:async_hooks';

const current = new AsyncLocalStorage<SourceBeingRead>();
const all = new Set<SourceBeingRead>();

/** A pipeline's `rows()` while it is read, for what its code throws where no call of ours can catch it. */
export class SourceBeingRead {
  /** Handed an error of the source's code that no call of `rows()` has thrown. */
  readonly fail: (error: unknown) => void;

  constructor(fail: (error: unknown) => void) {
    this.fail = fail;
    all.add(this);
  }

  /** Runs the source's code, so that whatever it starts, such as a timer, is known to be its own. */
  run<Result>(code: () => Result): Result {
    return current.run(this, code);
  }

  /** Nobody reads it any more: what its code still throws fails nothing. */
  end(): void {
    all.delete(this);
  }
}

/**
 * Lays an error that nothing waited for at the door of the source whose code threw it: its fill fails as `SourceFailed`, or
 * nothing does where the source has ended. Where it is not known whose it is, all that are being read fail. Returns false
 * where there is none: then it is no pipeline's error. For the process's handlers of such errors alone.
 */
export function failStraySource(error: unknown): boolean {
  const culprit = current.getStore();
  if (!culprit && all.size === 0) return false;
  for (const source of culprit ? [culprit] : all) if (all.has(source)) source.fail(error);
  return true;
}

/** What `process.exit` throws in a pipeline's code, which is to go no further. */
export class ExitCalled extends Error {
  override readonly name = 'ExitCalled';
}

/**
 * From here on `process.exit`, called by a source's code, fails that source's fill, in place of ending the process, with all
 * its other fills, in silence. What the process itself does about an event that a source's code has set off, such as a write to
 * a closed pipe, is to be bound outside of sources, by `AsyncResource.bind`. To be called once.
 */
export function containExit(): void {
  const exit = process.exit.bind(process);
  process.exit = (code) => {
    const culprit = current.getStore();
    // An argument that is undefined would take the place of process.exitCode.
    if (!culprit) return code === undefined ? exit() : exit(code);
    const called = new ExitCalled('process.exit was called');
    // Whether or not the code catches what is thrown.
    if (all.has(culprit)) culprit.fail(called);
    throw called;
  };
}
