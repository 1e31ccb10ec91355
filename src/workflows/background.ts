import { CancellationScope } from '@temporalio/workflow';

/** What a run does beside its lanes, and ends with them, whatever it waits for. */
export class Background {
  readonly #jobs = new Map<Promise<void>, CancellationScope>();
  /** The first that went wrong in a way that no job knows. */
  defect: { readonly reason: unknown } | undefined;

  /** Begins a job, which handles its own cancellation, and returns what cancels it. */
  start(job: () => Promise<void>): CancellationScope {
    const scope = new CancellationScope();
    const running: Promise<void> = scope
      .run(job)
      .catch((reason: unknown) => {
        this.defect ??= { reason };
      })
      .finally(() => this.#jobs.delete(running));
    this.#jobs.set(running, scope);
    return scope;
  }

  /** Cancels what goes on, and returns once nothing does. */
  async end(): Promise<void> {
    for (const scope of this.#jobs.values()) scope.cancel();
    await Promise.all(this.#jobs.keys());
  }
}
