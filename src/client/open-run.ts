import type { Client } from '@temporalio/client';
import { WORKFLOW_TYPES } from '../contract.js';
import { Failure } from '../failure.js';
import { describeRun, firstRunIn } from './describe-run.js';
import type { RunName } from './run-handle.js';

/** The first run of the chain that a run belongs to: of the id's newest where none is named. */
export async function firstRunOf(client: Client, { id, runId, firstRunId }: RunName): Promise<string> {
  return firstRunId ?? firstRunIn(await describeRun(client, id, runId));
}

/**
 * The run in which a backfill's chain is now. Throws `InvalidInput` where the chain has ended, however often its id has been
 * started since, and where the id is no backfill's; Temporal's `WorkflowNotFoundError` where it knows none.
 */
export async function openRun(client: Client, id: string, chain: string): Promise<string> {
  const newest = await describeRun(client, id);
  if (newest.type !== WORKFLOW_TYPES.backfill) {
    throw new Failure(
      'InvalidInput',
      `${id} is a workflow of type ${newest.type}: expected a backfill's id. \`repave status\` lists them.`,
    );
  }
  if (firstRunIn(newest) !== chain) {
    throw new Failure(
      'InvalidInput',
      `This run of ${id} has ended, and can be steered no more. Another was started under its id since.`,
    );
  }
  const { status, runId } = newest;
  if (status.name === 'RUNNING') return runId;
  const ended = status.name.toLowerCase().replace('_', ' ');
  throw new Failure('InvalidInput', `${id} has ended as ${ended}, and can be steered no more.`);
}
