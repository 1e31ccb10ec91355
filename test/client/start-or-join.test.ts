import assert from 'node:assert/strict';
import { Failure } from '../../src/client.js';
import { partitionWorkflowId, type Progress } from '../../src/contract.js';
import { type Bed, makeBed } from '../support/bed.js';
import { uniqueQueue } from '../support/workflow.js';
import { until } from '../workflows/scripted.js';

const FIRST = '2024-01-01';

describe('starting what runs already', function () {
  this.timeout(600_000);
  let bed: Bed;
  let input: { pipeline: string; from: string; to: string };

  before(async () => {
    bed = await makeBed();
    await bed.worker();
    input = { pipeline: bed.pipeline, from: FIRST, to: '2024-01-06' };
  });
  after(() => bed.close());
  beforeEach(async () => {
    await bed.database.sql('TRUNCATE daily, repave.fill, repave.partition');
    await bed.hold(FIRST);
  });
  afterEach(() => bed.letGo(FIRST));

  it('joins a backfill of equal input, and one fills for both', async () => {
    const first = await bed.client.backfill(input);
    const second = await bed.client.backfill({ ...input, order: 'oldest-first', priority: 3 });
    assert.equal(first.id, `backfill/${bed.pipeline}/2024-01-01..2024-01-06`);
    assert.deepEqual([first.joined, second.joined], [false, true]);
    assert.deepEqual([second.id, second.runId], [first.id, first.runId]);
    await bed.letGo(FIRST);
    const [one, two] = await Promise.all([first.result(), second.result()]);
    assert.deepEqual(one, two);
    assert.deepEqual(await bed.database.sql('SELECT count(*)::int FROM repave.fill'), [{ count: 6 }]);
  });

  it('refuses other input under the same id, naming what differs', async () => {
    const first = await bed.client.backfill(input);
    await assert.rejects(bed.client.backfill({ ...input, concurrency: 2, onBusy: 'skip' }), (error: unknown) => {
      assert.ok(error instanceof Failure);
      assert.equal(error.type, 'InvalidInput');
      assert.match(error.message, /another concurrency, onBusy\./);
      return true;
    });
    await bed.letGo(FIRST);
    await first.result();
  });

  it('joins a run of equal input that was started by other means, and refuses one of another input', async () => {
    const id = `backfill/${bed.pipeline}/2024-01-01..2024-01-06`;
    const other = await bed.client.temporal.workflow.start('backfill', {
      taskQueue: bed.taskQueue,
      workflowId: id,
      args: [input],
    });
    const joined = await bed.client.backfill({ ...input, priority: 3 });
    assert.deepEqual([joined.joined, joined.runId], [true, other.firstExecutionRunId]);
    await assert.rejects(bed.client.backfill({ ...input, concurrency: 2 }), {
      type: 'InvalidInput',
      message: /another concurrency\./,
    });
    await bed.letGo(FIRST);
    await Promise.all([joined.result(), other.result()]);
  });

  it('refuses to join a run whose input is none', async () => {
    const other = await bed.client.temporal.workflow.start('backfill', {
      taskQueue: uniqueQueue(),
      workflowId: `backfill/${bed.pipeline}/all+missing`,
      args: [{ pipeline: bed.pipeline, only: 'missing' }],
    });
    await assert.rejects(bed.client.backfill({ pipeline: bed.pipeline, only: ['missing'] }), {
      type: 'InvalidInput',
      message: /not known here/,
    });
    await other.terminate();
  });

  it('runs again what has ended', async () => {
    await bed.letGo(FIRST);
    const first = await bed.client.backfill(input);
    await first.result();
    const second = await bed.client.backfill(input);
    assert.equal(second.joined, false);
    assert.notEqual(second.runId, first.runId);
    await second.result();
    assert.deepEqual(await bed.database.sql('SELECT count(*)::int FROM repave.fill'), [{ count: 12 }]);
  });

  it('with only: ["missing"] leaves out what is done, and waits for what another run does', async () => {
    const first = await bed.client.backfill({ ...input, concurrency: 1 });
    await until(
      async () => !!(await first.progress().catch(() => undefined))?.running.some(({ keys }) => keys === FIRST),
    );
    const second = await bed.client.backfill({ ...input, only: ['missing'] });
    assert.equal(second.id, `${first.id}+missing`);
    await until(async () => (await second.progress().catch(() => undefined))?.filled === 5);
    await bed.letGo(FIRST);
    const [one, two] = await Promise.all([first.result(), second.result()]);
    // The first fills all it was asked to; the second finds that day done when its turn comes.
    assert.equal(one.filled, 6);
    assert.deepEqual([two.filled, two.skipped], [5, 1]);
    const perDay = await bed.database.sql(
      'SELECT key, count(*)::int FROM repave.fill GROUP BY key HAVING count(*) > 1 ORDER BY 1',
    );
    assert.equal(perDay.length, 5);
    const third = await bed.client.backfill({ ...input, only: ['missing'] });
    assert.equal((await third.result()).total, 0);
  });

  it('overlapping backfills both end, each day once for each', async () => {
    await bed.letGo(FIRST);
    const [one, two] = await Promise.all([
      bed.client.backfill({ ...input, to: '2024-01-20' }),
      bed.client.backfill({ ...input, from: '2024-01-10', to: '2024-01-30' }),
    ]);
    const results = await Promise.all([one.result(), two.result()]);
    assert.deepEqual(
      results.map(({ filled, failed }) => [filled, failed]),
      [
        [20, 0],
        [21, 0],
      ],
    );
    assert.deepEqual(await bed.database.sql('SELECT count(*)::int, min(n)::int, max(n)::int FROM daily'), [
      { count: 30, min: 3, max: 3 },
    ]);
  });

  it('follows to the end, and a cancel of one who joined cancels for all', async () => {
    const first = await bed.client.backfill({ ...input, concurrency: 2 });
    const second = await bed.client.backfill({ ...input, concurrency: 2 });
    const seen: Progress[] = [];
    const following = (async () => {
      for await (const progress of first.follow({ everyMs: 100 })) seen.push(progress);
    })();
    await until(() => seen.some(({ filled }) => filled === 5));
    await second.cancel();
    await assert.rejects(first.result(), { type: 'Cancelled' });
    await following;
    assert.equal(seen.at(-1)?.phase, 'ended');
    assert.equal(seen.at(-1)?.total, 6);
  });

  describe('a partition', () => {
    it('joins the run of equal input', async () => {
      const key = { pipeline: bed.pipeline, key: FIRST };
      const first = await bed.client.partition(key);
      const second = await bed.client.partition(key);
      assert.deepEqual([first.joined, second.joined, second.runId], [false, true, first.runId]);
      await bed.letGo(FIRST);
      assert.deepEqual(await first.result(), await second.result());
    });

    it('waits for a backfill’s run, then fills', async () => {
      const backfill = await bed.client.backfill({ ...input, to: FIRST });
      const child = bed.client.temporal.workflow.getHandle(partitionWorkflowId(bed.pipeline, FIRST));
      await until(async () => (await child.describe().catch(() => undefined))?.status.name === 'RUNNING');
      const waiting = bed.client.partition({ pipeline: bed.pipeline, key: FIRST });
      await bed.letGo(FIRST);
      await backfill.result();
      const handle = await waiting;
      assert.equal(handle.joined, false);
      assert.equal((await handle.result()).deleted, 1);
    });

    it('fails as Busy with onBusy: fail, and returns the other run with skip', async () => {
      const backfill = await bed.client.backfill({ ...input, to: FIRST });
      const id = partitionWorkflowId(bed.pipeline, FIRST);
      const child = bed.client.temporal.workflow.getHandle(id);
      await until(async () => (await child.describe().catch(() => undefined))?.status.name === 'RUNNING');
      const key = { pipeline: bed.pipeline, key: FIRST };
      await assert.rejects(bed.client.partition({ ...key, onBusy: 'fail' }), { type: 'Busy' });
      assert.equal((await bed.client.partition({ ...key, onBusy: 'skip' })).joined, true);
      // Started otherwise, under another id, the workflow itself looks.
      const start = (onBusy: string) =>
        bed.client.temporal.workflow.execute('partition', {
          taskQueue: bed.taskQueue,
          workflowId: `${id}/${onBusy}`,
          args: [{ ...key, onBusy }],
        });
      await assert.rejects(start('fail'), (error: Error) => (error.cause as { type?: string }).type === 'Busy');
      assert.equal(((await start('skip')) as { skipped?: boolean }).skipped, true);
      await bed.letGo(FIRST);
      await backfill.result();
    });
  });

  it('says that no worker polls, and that no progress is to be had', async () => {
    const { workflows, fills, control } = await bed.client.pollers();
    assert.ok(workflows > 0 && fills > 0 && control > 0);
    const lonely = await makeBed();
    try {
      assert.deepEqual(await lonely.client.pollers(), { workflows: 0, fills: 0, control: 0 });
      const handle = await lonely.client.backfill({ pipeline: lonely.pipeline, from: FIRST });
      await assert.rejects(handle.progress(), { name: 'NoAnswer' });
      await bed.client.temporal.workflow.getHandle(handle.id).terminate();
      await assert.rejects(handle.result(), { type: 'Terminated' });
    } finally {
      await lonely.close();
    }
  });
});
