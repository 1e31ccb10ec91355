import assert from 'node:assert/strict';
import { type Client, WorkflowNotFoundError } from '@temporalio/client';
import type { BackfillResult } from '../../src/contract.js';
import { until } from '../chaos/until.js';

/** The result of a run that a schedule is about to start. */
export async function resultOfRun(client: Client, id: string): Promise<BackfillResult> {
  await until(id, async () => {
    try {
      return await client.workflow.getHandle(id).describe();
    } catch (error) {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    }
  });
  return (await client.workflow.getHandle(id).result()) as BackfillResult;
}

/** Ids of the runs that a schedule has started, oldest first; `count` of them, which are waited for. */
export async function runsOf(client: Client, scheduleId: string, count: number): Promise<string[]> {
  return until(`${count} runs of ${scheduleId}`, async () => {
    const ids: string[] = [];
    for await (const { workflowId } of client.workflow.list({ query: `TemporalScheduledById = '${scheduleId}'` })) {
      ids.push(workflowId);
    }
    assert.ok(ids.length <= count, `${ids.length} runs of ${scheduleId}: ${ids.join(', ')}`);
    return ids.length === count && ids.sort();
  });
}
