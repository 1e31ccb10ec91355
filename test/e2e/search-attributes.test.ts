import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import type { BackfillResult } from '../../src/contract.js';
import { registerSearchAttributes } from '../../src/temporal/search-attributes.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { SALES, SALES_SUMMARY } from '../cli/repave.js';
import { createNamespace } from './temporal-cli.js';

const DAYS = { pipeline: 'sales_summary', from: '1997-01-01', to: '1997-01-02' } as const;

describe('search attributes of runs', function () {
  this.timeout(300_000);
  let installation: Installation | undefined;
  afterEach(() => installation?.close());

  /** A worker in a namespace of its own. */
  const open = async (): Promise<Installation> =>
    (installation = await Installation.open({
      pipelines: { 'sales_summary.sql': SALES_SUMMARY },
      tables: SALES,
      namespace: await createNamespace(),
    }));

  it('are done without where the namespace has none: the backfill runs, and no workflow task fails', async () => {
    const { client, temporal } = await open();
    await installation?.startWorker();
    const handle = await client.backfill(DAYS);
    assert.equal((await handle.result()).filled, 2);
    for (const id of [handle.id, 'sales_summary/1997-01-01']) {
      assert.equal(await failedTasks(temporal.workflow.getHandle(id)), 0, id);
    }
  });

  it('find a backfill by its pipeline, and its children by their key and their backfill', async () => {
    const { client, temporal, namespace } = await open();
    await registerSearchAttributes(temporal.connection, namespace);
    // The server goes by its own copies of the namespace, which follow a little later.
    await until('the server to know them', () =>
      temporal.workflow.count('RepaveKey = "x"').then(
        () => true,
        () => false,
      ),
    );
    await installation?.startWorker();
    const handle = await client.backfill(DAYS);
    assert.equal((await handle.result()).filled, 2);
    const found = (query: string, count: number): Promise<string[]> =>
      until(`${count} runs of ${query}`, async () => {
        const ids: string[] = [];
        for await (const { workflowId } of temporal.workflow.list({ query })) ids.push(workflowId);
        return ids.length >= count && ids.sort();
      });
    const children = ['sales_summary/1997-01-01', 'sales_summary/1997-01-02'];
    assert.deepEqual(await found('RepavePipeline = "sales_summary" AND RepaveKey = "1997-01-01"', 1), [children[0]]);
    assert.deepEqual(await found(`RepaveBackfill = "${handle.id}" AND RepaveKey IS NOT NULL`, 2), children);
    assert.deepEqual(await found('RepavePipeline = "sales_summary"', 3), [handle.id, ...children]);
    for (const id of [handle.id, ...children]) assert.equal(await failedTasks(temporal.workflow.getHandle(id)), 0, id);

    // An id of a caller's own choice may be longer than what Temporal's databases keep of it here.
    const workflowId = 'ä'.repeat(300);
    const { taskQueue } = client;
    const long = await temporal.workflow.start('backfill', { taskQueue, workflowId, args: [DAYS] });
    assert.equal(((await long.result()) as BackfillResult).filled, 2);
    const query = `RepaveBackfill = "${'ä'.repeat(255)}"`;
    assert.deepEqual(await found(query, 3), [...children, workflowId]);
    assert.equal(await failedTasks(long), 0);
  });
});

async function failedTasks(handle: WorkflowHandle): Promise<number> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).filter((event) => event.workflowTaskFailedEventAttributes).length;
}
