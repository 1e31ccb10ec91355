import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { WorkflowHandle } from '@temporalio/client';
import { BackfillFailed, RunFailed } from '../../src/client.js';
import type { BackfillResult, PartitionResult } from '../../src/contract.js';
import { type Bed, makeBed } from '../support/bed.js';

const header = (settings: string): string => `-- repave
-- target: daily
-- partition: { column: day, by: day }
-- start: 2024-01-01
-- ready: { sql: "SELECT EXISTS (SELECT FROM arrived WHERE key = :key)", retryAfter: 1s }
${settings}
SELECT :date AS day, count(*) AS n FROM sales WHERE sold_on = :date
`;

const TYPESCRIPT = `
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { definePipeline } from 'repave';
export default definePipeline({
  target: 'daily_ts',
  partition: { column: 'day', by: 'day' },
  ready: ({ key }) => existsSync(join(process.env.REPAVE_PROJECT ?? '', key)) || '1s',
  async *rows({ key }) { yield { day: key, n: 1 }; },
});
`;

describe('days whose source is not ready', function () {
  this.timeout(300_000);
  let bed: Bed;
  let impatient: string;
  let batches: string;
  let typescript: string;

  before(async () => {
    bed = await makeBed({ pipeline: header('-- concurrency: 1') });
    await bed.database.sql(`
      CREATE TABLE arrived (key text NOT NULL);
      CREATE TABLE impatient (day date NOT NULL, n bigint NOT NULL);
      CREATE TABLE batches (LIKE impatient);
      CREATE TABLE daily_ts (LIKE impatient);`);
    [impatient, batches, typescript] = ['impatient', 'batches', 'ts'].map((kind) => `${bed.pipeline}_${kind}`) as [
      string,
      string,
      string,
    ];
    const write = (file: string, text: string): void => writeFileSync(join(bed.project, 'pipelines', file), text);
    // Time enough for a fill on a slow machine.
    write(`${impatient}.sql`, header('-- retry: { giveUpAfter: 20s }').replace('target: daily', 'target: impatient'));
    write(`${batches}.sql`, header('-- batch: 10').replace('target: daily', 'target: batches'));
    write(`${typescript}.ts`, TYPESCRIPT);
    await bed.worker();
  });
  after(() => bed.close());
  afterEach(async () => {
    // A source that is not ready leaves nothing open and nothing claimed behind.
    assert.deepEqual(await bed.database.sql('SELECT pipeline, key FROM repave.claim WHERE NOT closed'), []);
  });

  const arrive = (...keys: string[]) => bed.database.sql('INSERT INTO arrived SELECT unnest($1::text[])', [keys]);
  const filled = async (pipeline: string, month: string): Promise<string[]> => {
    const fills = 'SELECT key FROM repave.fill WHERE pipeline = $1 AND key LIKE $2 ORDER BY id';
    return (await bed.database.sql<{ key: string }>(fills, [pipeline, `${month}%`])).map(({ key }) => key);
  };
  const failures = (pipeline: string) =>
    bed.database.sql<{ key: string; type: string; message: string }>(
      'SELECT key, type, message FROM repave.failure WHERE pipeline = $1 ORDER BY key',
      [pipeline],
    );

  it('go behind the others on the only lane, and are filled once it is', async () => {
    const { pipeline, client } = bed;
    await arrive('2024-01-02', '2024-01-03');
    const handle = await client.backfill({ pipeline, from: '2024-01-01', to: '2024-01-03' });
    await until(async () => {
      const { filled, waiting } = await handle.progress();
      return filled === 2 && waiting === 1;
    });
    await arrive('2024-01-01');
    assert.equal((await handle.result()).filled, 3);
    assert.deepEqual(await filled(pipeline, '2024-01'), ['2024-01-02', '2024-01-03', '2024-01-01']);
    assert.deepEqual(await failures(pipeline), []);
  });

  it('fail as SourceNotReady, on record, once giveUpAfter has passed', async () => {
    await arrive('2024-02-01');
    const handle = await bed.client.backfill({ pipeline: impatient, from: '2024-02-01', to: '2024-02-02' });
    const result = await handle.result().then(
      () => assert.fail('it did not fail'),
      (error: unknown) => error instanceof BackfillFailed && error.result,
    );
    assert.ok(result);
    assert.deepEqual([result.filled, result.failed], [1, 1]);
    assert.deepEqual(
      result.failures.map(({ key, type }) => [key, type]),
      [['2024-02-02', 'SourceNotReady']],
    );
    const [failure, ...more] = await failures(impatient);
    assert.deepEqual(more, []);
    assert.deepEqual([failure?.key, failure?.type], ['2024-02-02', 'SourceNotReady']);
    assert.match(failure?.message ?? '', /not there yet.*giveUpAfter/);
  });

  it('started alone are asked again after the delay, and fail when it is given up', async () => {
    const alone = await bed.client.partition({ pipeline: bed.pipeline, key: '2024-02-10' });
    await until(async () => (await attempts(alone.id)) > 1);
    await arrive('2024-02-10');
    const result: PartitionResult = await alone.result();
    assert.deepEqual([result.key, result.rows, result.notReady], ['2024-02-10', 1, undefined]);
    const given = await bed.client.partition({ pipeline: impatient, key: '2024-02-11' });
    await assert.rejects(given.result(), (error) => error instanceof RunFailed && error.type === 'SourceNotReady');
    assert.equal((await failures(impatient)).at(-1)?.key, '2024-02-11');
  });

  it('hold up no cancel', async () => {
    const { pipeline, client } = bed;
    // One alone: of two, a slow machine might always be asking for one.
    const handle = await client.backfill({ pipeline, keys: ['2024-03-01'] });
    await until(async () => (await handle.progress()).waiting === 1);
    await handle.cancel();
    await assert.rejects(handle.result(), (error) => error instanceof BackfillFailed && error.type === 'Cancelled');
    assert.deepEqual(await filled(pipeline, '2024-03'), []);
  });

  it('are carried into the run that goes on', async () => {
    const { pipeline, client, taskQueue } = bed;
    await arrive('2024-03-13', '2024-03-14', '2024-03-15');
    const workflowId = `test/${pipeline}/continued`;
    const { temporal } = client;
    await temporal.workflow.start('backfill', {
      taskQueue,
      workflowId,
      args: [{ pipeline, from: '2024-03-11', to: '2024-03-15' }, { partitionsPerRun: 2 }],
    });
    const handle: WorkflowHandle = temporal.workflow.getHandle(workflowId);
    await until(async () => (await filled(pipeline, '2024-03')).length === 3);
    await arrive('2024-03-11', '2024-03-12');
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.total, result.filled, result.failed], [5, 5, 0]);
    const [, , , ...last] = await filled(pipeline, '2024-03');
    assert.deepEqual(last.sort(), ['2024-03-11', '2024-03-12']);
  });

  it('of a batch wait while their neighbours are filled', async () => {
    await arrive('2024-04-01', '2024-04-02', '2024-04-04');
    const handle = await bed.client.backfill({ pipeline: batches, from: '2024-04-01', to: '2024-04-05' });
    await until(async () => (await handle.progress()).filled === 3);
    await arrive('2024-04-03', '2024-04-05');
    assert.equal((await handle.result()).filled, 5);
    const [, , , ...last] = await filled(batches, '2024-04');
    assert.deepEqual(last.sort(), ['2024-04-03', '2024-04-05']);
  });

  it('of a TypeScript pipeline wait as its function says', async () => {
    const handle = await bed.client.backfill({ pipeline: typescript, from: '2024-04-01', to: '2024-04-02' });
    const arrives = (key: string): void => writeFileSync(join(bed.project, key), '');
    arrives('2024-04-02');
    await until(async () => (await handle.progress()).filled === 1);
    arrives('2024-04-01');
    assert.equal((await handle.result()).filled, 2);
  });

  /** The attempt at which a partition's fill is, as Temporal counts. */
  async function attempts(workflowId: string): Promise<number> {
    const { raw } = await bed.client.temporal.workflow.getHandle(workflowId).describe();
    return raw.pendingActivities?.[0]?.attempt ?? 0;
  }
});

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, 50));
}
