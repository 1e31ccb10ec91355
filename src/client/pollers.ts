import type { Client } from '@temporalio/client';
import { controlQueue } from '../contract.js';

/** How many pollers each part of the work has. All are 0 where no worker runs. */
export interface Pollers {
  readonly workflows: number;
  readonly fills: number;
  readonly control: number;
}

/** A long poll lasts a minute; the server remembers pollers for five. */
const RECENT_MS = 75_000;
/** `temporal.api.enums.v1.TaskQueueType`. */
const QUEUE = { workflow: 1, activity: 2 } as const;

/** Asks the server who polls a task queue and its control queue. A worker that was killed counts for about a minute more. */
export async function readPollers(client: Client, taskQueue: string): Promise<Pollers> {
  const count = async (name: string, taskQueueType: number): Promise<number> => {
    const { pollers } = await client.workflowService.describeTaskQueue({
      namespace: client.options.namespace,
      taskQueue: { name },
      taskQueueType,
    });
    const since = Date.now() - RECENT_MS;
    return (pollers ?? []).filter(({ lastAccessTime }) => Number(lastAccessTime?.seconds ?? 0) * 1000 > since).length;
  };
  const [workflows, fills, control] = await Promise.all([
    count(taskQueue, QUEUE.workflow),
    count(taskQueue, QUEUE.activity),
    count(controlQueue(taskQueue), QUEUE.activity),
  ]);
  return { workflows, fills, control };
}
