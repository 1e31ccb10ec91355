import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/activity';
import { type Client, WorkflowFailedError, type WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { CancelledFailure } from '@temporalio/common';
import { partitionWorkflowId } from '../../src/contract.js';
import { type InProcessWorkers, startWorkers, testClient } from '../support/workflow.js';
import { beating, type Scripted } from './scripted.js';

/** The workers and the client of one file's tests; workers are stopped after each test. */
export class Harness {
  client!: Client;
  readonly #workers: InProcessWorkers[] = [];

  constructor() {
    before(async () => (this.client = await testClient()));
    afterEach(async () => {
      for (const running of this.#workers.splice(0)) await running.stop();
    });
    after(() => this.client.connection.close());
  }

  /** Starts workers that do what the script says, on a queue of their own unless one is named. */
  async workers(script: Scripted, taskQueue?: string): Promise<string> {
    const running = await startWorkers({ fills: beating(script.fills), control: beating(script.control), taskQueue });
    this.#workers.push(running);
    return running.taskQueue;
  }

  /** Starts workers and a workflow on them. */
  async start(
    type: string,
    script: Scripted,
    args: unknown[],
    workflowId = `test/${randomUUID()}`,
  ): Promise<WorkflowHandleWithFirstExecutionRunId> {
    return this.client.workflow.start(type, { taskQueue: await this.workers(script), workflowId, args });
  }

  /** Starts workers and a backfill of the script's pipeline on them. */
  async backfill(script: Scripted, ...more: unknown[]): Promise<WorkflowHandleWithFirstExecutionRunId> {
    const { pipeline } = script;
    return this.start('backfill', script, [{ pipeline }, ...more], `backfill/${pipeline}/${randomUUID()}`);
  }

  /** How a partition's child stands, or `never started`. */
  async childStatus({ pipeline }: Scripted, key: string): Promise<string> {
    try {
      return (await this.client.workflow.getHandle(partitionWorkflowId(pipeline, key)).describe()).status.name;
    } catch {
      return 'never started';
    }
  }
}

/** The failure that a workflow ends with. */
export async function failureOf(handle: { result(): Promise<unknown> }): Promise<ApplicationFailure> {
  try {
    await handle.result();
  } catch (error) {
    assert.ok(error instanceof WorkflowFailedError, String(error));
    assert.ok(error.cause instanceof ApplicationFailure, String(error.cause));
    return error.cause;
  }
  assert.fail('it did not fail');
}

/** For `assert.rejects`: the workflow ended as cancelled. */
export function cancelled(error: unknown): true {
  assert.ok(error instanceof WorkflowFailedError, String(error));
  assert.ok(error.cause instanceof CancelledFailure, String(error.cause));
  return true;
}

/** For `assert.rejects`: the workflow failed as a type, with a message that holds a text. */
export function failedAs(type: string, text: string): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof WorkflowFailedError, String(error));
    assert.ok(error.cause instanceof ApplicationFailure, String(error.cause));
    assert.equal(error.cause.type, type);
    assert.ok(error.cause.message.includes(text), error.cause.message);
    return true;
  };
}
