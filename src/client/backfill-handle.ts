import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, QueryNotRegisteredError, ServiceError } from '@temporalio/client';
import { PROGRESS_QUERY, type BackfillResult, type Progress } from '../contract.js';
import { backfillFailed } from './run-failed.js';
import { currentHandle, resultHandle, type RunName } from './run-handle.js';

/** Milliseconds to wait for a worker to answer a query. */
const ANSWER_MS = 5_000;
const FOLLOW_EVERY_MS = 1_000;

/** A query that nobody answered: no worker polls, or all are busy. The run itself is safe. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer';
}

/** A backfill that runs, or has ended. */
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
  async result(): Promise<BackfillResult> {
    try {
      return (await resultHandle(this.#client, this.#run).result()) as BackfillResult;
    } catch (error) {
      throw backfillFailed(error);
    }
  }

  /** How far it is, by a query that a worker answers. Throws {@link NoAnswer} where none does within 5 s. */
  async progress(): Promise<Progress> {
    try {
      return await this.#client.withDeadline(Date.now() + ANSWER_MS, () =>
        currentHandle(this.#client, this.#run).query<Progress>(PROGRESS_QUERY),
      );
    } catch (error) {
      if (error instanceof ServiceError || error instanceof QueryNotRegisteredError) {
        throw new NoAnswer(`No worker has answered for ${this.id} within ${ANSWER_MS / 1000} s. See that one runs.`);
      }
      throw error;
    }
  }

  /**
   * The progress whenever it has changed, about once a second, until the backfill has ended; the last is how it ended. Seconds
   * in which no worker answers are passed over. To stop following changes nothing about the run.
   */
  async *follow(options: { readonly everyMs?: number } = {}): AsyncGenerator<Progress, void, undefined> {
    let ended = false;
    const over = this.result().then(
      () => (ended = true),
      () => (ended = true),
    );
    let last = '';
    for (;;) {
      const final = ended;
      const progress = await this.#progressIfAnswered();
      const text = JSON.stringify(progress);
      if (progress && text !== last) yield progress;
      last = text;
      if (final) return;
      const pause = new AbortController();
      await Promise.race([
        over,
        sleep(options.everyMs ?? FOLLOW_EVERY_MS, undefined, { signal: pause.signal }).catch(() => undefined),
      ]);
      pause.abort();
    }
  }

  /** Asks for a cancel: nothing more is started, and the run ends once every fill is rolled back. Returns at once. */
  async cancel(): Promise<void> {
    await currentHandle(this.#client, this.#run).cancel();
  }

  async #progressIfAnswered(): Promise<Progress | undefined> {
    try {
      return await this.progress();
    } catch (error) {
      if (error instanceof NoAnswer) return undefined;
      throw error;
    }
  }
}
