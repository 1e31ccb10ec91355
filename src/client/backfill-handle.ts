import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, QueryNotRegisteredError, ServiceError } from '@temporalio/client';
import { PROGRESS_QUERY, type BackfillResult, type Lever, type LeverInputs, type Progress } from '../contract.js';
import { abortableCall, longCall } from './abortable-call.js';
import { type Attempt, readAttempts } from './attempts.js';
import { firstArgument } from './first-argument.js';
import { judgeConcurrency, judgeReason } from './judge-lever.js';
import { firstRunOf } from './open-run.js';
import { type Pulled, pullLever } from './pull-lever.js';
import { backfillFailed } from './run-failed.js';
import { currentHandle, resultHandle, type RunName } from './run-handle.js';

/** Milliseconds to wait for a worker to answer a query. */
const ANSWER_MS = 5_000;
const FOLLOW_EVERY_MS = 1_000;

/** A query that nobody answered: no worker polls, or all are busy. The run itself is safe. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

export interface Abortable {
  /** Ends the call, which then throws the signal's reason. The run itself goes on as it is. */
  readonly signal?: AbortSignal;
}

/**
 * A backfill that runs, or has ended. Its levers (`pause`, `resume`, `setConcurrency`, `stop`, `retryFailed`) are pulled once, however
 * often what was sent arrives, in the run that was started, joined or named, over its continue-as-new, and never in one that starts
 * under its id later. Where no worker answers within 5 s they are kept by Temporal, and take force once one runs. Each throws `InvalidInput` for an argument
 * that is wrong and where the run has ended.
 */
export class BackfillHandle {
  readonly id: string;
  /** The run started or joined; undefined where only an id was given. */
  readonly runId: string | undefined;
  readonly joined: boolean;
  readonly #client: Client;
  readonly #run: RunName;

  constructor(client: Client, run: RunName) {
    this.id = run.id;
    this.runId = run.runId;
    this.joined = run.joined;
    this.#client = client;
    this.#run = run;
  }

  /** Waits for the end, over continue-as-new. Throws `BackfillFailed` where it did not succeed. */
  async result({ signal }: Abortable = {}): Promise<BackfillResult> {
    try {
      return (await longCall(this.#client, signal, () =>
        resultHandle(this.#client, this.#run).result(),
      )) as BackfillResult;
    } catch (error) {
      throw backfillFailed(error);
    }
  }

  /** What it was started with, by whoever and unjudged. */
  async input(): Promise<unknown> {
    const { id, runId } = this.#run;
    return firstArgument(this.#client, await this.#client.workflow.getHandle(id, runId).describe());
  }

  /** How far it is, by a query that a worker answers. Throws {@link NoAnswer} where none does within 5 s. */
  async progress({ signal }: Abortable = {}): Promise<Progress> {
    try {
      return await abortableCall(this.#client, signal, () =>
        this.#client.withDeadline(Date.now() + ANSWER_MS, () =>
          currentHandle(this.#client, this.#run).query<Progress>(PROGRESS_QUERY),
        ),
      );
    } catch (error) {
      if (error instanceof ServiceError || error instanceof QueryNotRegisteredError) {
        throw new NoAnswer(`No worker has answered for ${this.id} within ${ANSWER_MS / 1000} s. See that one runs.`);
      }
      throw error;
    }
  }

  /**
   * What it and each of its running children are at, the backfill's own first: which attempt, since when, and why the one before
   * has failed. The server is asked, so that no worker need run; with `keys`, as `progress` names them, only of these children.
   */
  async attempts({ keys }: { readonly keys?: readonly string[] } = {}): Promise<Attempt[]> {
    return readAttempts(this.#client, this.id, keys);
  }

  /**
   * The progress whenever it has changed, about once a second, until the backfill has ended; the last is how it ended. Seconds
   * in which no worker answers are passed over. To stop following changes nothing about the run.
   */
  async *follow(options: Abortable & { readonly everyMs?: number } = {}): AsyncGenerator<Progress, void, undefined> {
    // Whoever stops following leaves no wait for the end behind.
    const following = new AbortController();
    const signal = options.signal ? AbortSignal.any([options.signal, following.signal]) : following.signal;
    let ended = false;
    const over = this.result({ signal }).then(
      () => (ended = true),
      () => (ended = true),
    );
    try {
      let last = '';
      for (;;) {
        const final = ended;
        const progress = await this.#progressIfAnswered(signal);
        const text = JSON.stringify(progress);
        if (progress && text !== last) yield progress;
        last = text;
        options.signal?.throwIfAborted();
        if (final) return;
        const pause = new AbortController();
        await Promise.race([
          over,
          sleep(options.everyMs ?? FOLLOW_EVERY_MS, undefined, { signal: pause.signal }).catch(() => undefined),
        ]);
        pause.abort();
        options.signal?.throwIfAborted();
      }
    } finally {
      following.abort();
    }
  }

  /** Starts nothing more until `resume`; what runs goes on to its end. `reason`: at most 200 characters, shown wherever it is. */
  async pause(reason?: string): Promise<Pulled> {
    judgeReason(reason);
    return this.#pull('pause', reason === undefined ? {} : { reason });
  }

  /** Goes on where it was paused, by whom and why ever. */
  async resume(): Promise<Pulled> {
    return this.#pull('resume', {});
  }

  /** Partitions at once from now on, 1 to 100; where more run, those go on to their end. */
  async setConcurrency(concurrency: number): Promise<Pulled> {
    judgeConcurrency(concurrency);
    return this.#pull('setConcurrency', { concurrency });
  }

  /** Starts nothing more, finishes what runs, and ends. */
  async stop(): Promise<Pulled> {
    return this.#pull('stop', {});
  }

  /** Fills again the partitions that have failed in it so far. */
  async retryFailed(): Promise<Pulled> {
    return this.#pull('retryFailed', {});
  }

  /**
   * Asks for a cancel: nothing more is started, and the run ends once every fill is rolled back. Returns at once. Reaches the run
   * that was started, joined or named, over its continue-as-new, and none that starts under its id later: where it has ended,
   * throws Temporal's `WorkflowNotFoundError`.
   */
  async cancel(): Promise<void> {
    const { runId } = this.#run;
    const firstRunId = runId === undefined ? undefined : await firstRunOf(this.#client, this.#run);
    await currentHandle(this.#client, { ...this.#run, firstRunId }).cancel();
  }

  async #pull<L extends Lever>(lever: L, input: LeverInputs[L]): Promise<Pulled> {
    return pullLever(this.#client, this.#run, lever, input);
  }

  async #progressIfAnswered(signal: AbortSignal): Promise<Progress | undefined> {
    try {
      return await this.progress({ signal });
    } catch (error) {
      if (error instanceof NoAnswer) return undefined;
      throw error;
    }
  }
}
