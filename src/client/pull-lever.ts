import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type Client,
  ServiceError,
  WorkflowNotFoundError,
  WorkflowUpdateFailedError,
  WorkflowUpdateRPCTimeoutOrCancelledError,
} from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { isFailureType, type Lever, type LeverInputs, type Steer, STEER_SIGNAL, type Steered } from '../contract.js';
import { Failure } from '../failure.js';
import { firstRunOf, openRun } from './open-run.js';
import type { RunName } from './run-handle.js';

/**
 * What became of a lever. `update`: a worker has answered, and it is in force as `steered` says. `signal`: no worker has
 * answered within 5 s; Temporal keeps it, and it takes force once a worker runs.
 */
export type Pulled = { readonly sent: 'update'; readonly steered: Steered } | { readonly sent: 'signal' };

/** Milliseconds to wait for a worker's answer. */
const ANSWER_MS = 5_000;
/** Milliseconds the server may take to keep a signal. */
const SIGNAL_MS = 10_000;
/** Runs of one chain that may end between the look at them and what was sent to them. */
const TRIES = 20;
const BETWEEN_TRIES_MS = 100;

/**
 * Pulls a lever of the chain that a run belongs to, and of none that starts under its id later. It arrives at least once, and
 * is pulled once: all that is sent has one id. Throws `InvalidInput` where the run has ended, is no backfill or refuses what it is
 * given.
 */
export async function pullLever<L extends Lever>(
  client: Client,
  run: RunName,
  lever: L,
  input: LeverInputs[L],
): Promise<Pulled> {
  const steer: Steer<L> = { id: randomUUID(), lever, input };
  const chain = await firstRunOf(client, run);
  let until: number | undefined;
  for (let tries = 1; ; tries++) {
    const runId = await openRun(client, run.id, chain);
    // A server that is slow to say which run it is says nothing about its workers.
    until ??= Date.now() + ANSWER_MS;
    try {
      if (Date.now() < until) return { sent: 'update', steered: await update(client, run.id, runId, steer, until) };
      await signal(client, run.id, runId, steer);
      return { sent: 'signal' };
    } catch (error) {
      if (error instanceof WorkflowUpdateRPCTimeoutOrCancelledError) continue;
      // It goes on in a new run, or has ended: the next look says.
      if (!runIsOver(error) || tries === TRIES) throw told(error, run.id, lever);
    }
    await sleep(BETWEEN_TRIES_MS);
  }
}

async function update(client: Client, id: string, runId: string, steer: Steer, until: number): Promise<Steered> {
  return client.withDeadline(until, () =>
    client.workflow
      .getHandle(id, runId)
      .executeUpdate<Steered, [Steer['input']]>(steer.lever, { args: [steer.input], updateId: steer.id }),
  );
}

async function signal(client: Client, id: string, runId: string, steer: Steer): Promise<void> {
  await client.withDeadline(Date.now() + SIGNAL_MS, () =>
    client.workflow.getHandle(id, runId).signal<[Steer]>(STEER_SIGNAL, steer),
  );
}

/** gRPC's ABORTED: the server has let go of an update, since its run has ended. */
const ABORTED = 10;

/** Whether the run was over when it was asked, or ended before it had answered. */
function runIsOver(error: unknown): boolean {
  if (error instanceof WorkflowNotFoundError) return true;
  if (error instanceof ServiceError) return (error.cause as { code?: unknown } | undefined)?.code === ABORTED;
  if (!(error instanceof WorkflowUpdateFailedError) || !(error.cause instanceof ApplicationFailure)) return false;
  return error.cause.type === 'AcceptedUpdateCompletedWorkflow';
}

/** A refusal of the workflow's own in the contract's types; any other error as it is. */
function told(error: unknown, id: string, lever: Lever): unknown {
  if (!(error instanceof WorkflowUpdateFailedError)) return error;
  const { cause, message } = error;
  if (cause?.message.startsWith('No registered handler for update')) {
    return new Failure(
      'InvalidInput',
      `The worker that runs ${id} is of a version without ${lever}. Upgrade the workers.`,
    );
  }
  const type = cause instanceof ApplicationFailure && isFailureType(cause.type) ? cause.type : 'InvalidInput';
  return new Failure(type, cause?.message ?? message);
}
