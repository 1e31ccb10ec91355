import type { Client } from '@temporalio/client';
import type { PartitionResult } from '../contract.js';
import { runFailed } from './run-failed.js';
import { currentHandle, resultHandle, type RunName } from './run-handle.js';

/** A partition's run that was started or joined. */
export class PartitionHandle {
  readonly id: string;
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

  /** Waits for the end. Throws `RunFailed` where it did not succeed. */
  async result(): Promise<PartitionResult> {
    try {
      return (await resultHandle(this.#client, this.#run).result()) as PartitionResult;
    } catch (error) {
      throw runFailed(error);
    }
  }

  /** Asks for a cancel: the run ends once its fill is rolled back. Returns at once. */
  async cancel(): Promise<void> {
    await currentHandle(this.#client, this.#run).cancel();
  }
}
