import assert from 'node:assert/strict';
import type { BackfillResult } from '../../src/contract.js';
import { Diamond, FIRST, LAST, PARTITIONS } from '../e2e/diamond.js';

describe('a diamond of four pipelines over days and months, whose worker is killed in the middle', function () {
  this.timeout(600_000);
  let diamond: Diamond;

  before(async () => {
    diamond = await Diamond.open();
  });
  after(async () => {
    await diamond.installation.close();
  });

  it('ends right: in order, each partition filled once, and none outdated', async () => {
    const { installation } = diamond;
    const worker = await installation.startWorker();
    await diamond.hold('by_day', '2024-02-10');
    // In several runs, of which the last one goes on downstream.
    const input = { pipeline: diamond.name('days'), from: FIRST, to: LAST, downstream: true };
    const backfill = await installation.temporal.workflow.start<(...args: unknown[]) => Promise<BackfillResult>>(
      'backfill',
      {
        workflowId: `backfill/${input.pipeline}`,
        taskQueue: installation.taskQueue,
        args: [input, { partitionsPerRun: 12 }],
      },
    );
    await installation.heldFills(1, diamond.name('by_day'));
    await Promise.all([worker.kill(), installation.startWorker()]);
    await diamond.release('by_day', '2024-02-10');
    const { downstream } = await backfill.result();
    assert.deepEqual(
      downstream?.map(({ pipeline, total, filled, failed }) => ({ pipeline, total, filled, failed })),
      (['by_day', 'by_month', 'report'] as const).map((part) => {
        return { pipeline: diamond.name(part), total: PARTITIONS[part], filled: PARTITIONS[part], failed: 0 };
      }),
    );
    await diamond.isRight();
    assert.deepEqual(await diamond.fills(), PARTITIONS);
    for (const part of ['days', 'by_day', 'by_month', 'report']) {
      const rest = await diamond.backfill(part, { only: ['failed', 'outdated'], dryRun: true });
      assert.equal((await rest.result()).total, 0, part);
    }
    assert.deepEqual(await installation.leftBehind(), []);
  });
});
