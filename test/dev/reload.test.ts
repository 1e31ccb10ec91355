import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { partitionWorkflowId } from '../../src/contract.js';
import { type Running, startRepave } from '../cli/repave.js';
import { type Bed, makeBed } from '../support/bed.js';
import { testTemporal } from '../support/temporal.js';
import { until } from '../workflows/scripted.js';

/** Its rows come from a file beside pipelines/. */
const typescript = (table: string): string => `
import { definePipeline } from 'repave';
import { numberOf } from '../lib/number.js';

export default definePipeline({
  target: '${table}',
  partition: { column: 'day', by: 'day' },
  rows: ({ key }) => [{ day: key, n: numberOf(key) }],
});
`;

describe('repave dev, when a pipeline’s file changes', function () {
  this.timeout(600_000);
  let bed: Bed;
  let dev: Running;

  before(async () => {
    bed = await makeBed();
    await bed.database.sql('CREATE TABLE by_code AS TABLE daily');
    dev = startRepave(bed.project, ['dev'], {
      // No servers of its own: this is about the worker.
      DATABASE_URL: bed.database.ownerUrl,
      TEMPORAL_ADDRESS: (await testTemporal()).address,
      REPAVE_TASK_QUEUE: bed.taskQueue,
      REPAVE_SHUTDOWN_GRACE: '60',
    });
    await dev.says(/Ctrl-C stops everything/);
  });
  after(async () => {
    dev.process.kill('SIGINT');
    if (dev.process.exitCode === null) await once(dev.process, 'exit');
    await bed.close();
  });

  const file = (path: string): string => join(bed.project, path);
  const filled = async (key: string, pipeline = bed.pipeline, table = 'daily'): Promise<unknown[]> => {
    await (await bed.client.partition({ pipeline, key })).result();
    return (await bed.database.sql(`SELECT n::int FROM ${table} WHERE day = $1`, [key])).map(({ n }) => n);
  };

  it('lets running fills end, and fills by the new query from then on', async () => {
    assert.deepEqual(await filled('2024-01-01'), [3]);
    await bed.hold('2024-01-02');
    const { pipeline } = bed;
    const running = await bed.client.partition({ pipeline, key: '2024-01-02' });
    const child = bed.client.temporal.workflow.getHandle(partitionWorkflowId(pipeline, '2024-01-02'));
    const { runId } = await child.describe();
    await until(async () => (await bed.sessionsOf(runId)).some(({ state }) => state === 'active'));

    writeFileSync(
      file(`pipelines/${pipeline}.sql`),
      '-- repave\n-- target: daily\n-- partition: { column: day, by: day }\nSELECT :date AS day, 42 AS n\n',
    );
    await dev.says(new RegExp(`pipelines/${pipeline}\\.sql changed: the worker starts again\\.`));
    await bed.letGo('2024-01-02');
    assert.equal((await running.result()).rows, 1);
    assert.deepEqual(await bed.database.sql(`SELECT n::int FROM daily WHERE day = '2024-01-02'`), [{ n: 3 }]);
    await dev.says(/Another worker runs, pid \d+/);
    assert.deepEqual(await filled('2024-01-03'), [42]);
  });

  it('takes in a new file, what it imports and a change of that, and goes on beside a broken one', async () => {
    const name = `${bed.pipeline}_code`;
    mkdirSync(file('lib'));
    writeFileSync(file('lib/number.ts'), 'export const numberOf = (key: string): number => Number(key.slice(-2));\n');
    writeFileSync(file(`pipelines/${name}.ts`), typescript('by_code'));
    writeFileSync(file('pipelines/broken.sql'), '-- repave\n-- target: [\nSELECT 1\n');
    const said = await dev.says(/broken\.sql is new.*: the worker starts again/);
    assert.match(said, /lib\/number\.ts is new/);
    await dev.says(/Pipeline broken is not served/);
    assert.deepEqual(await servedAs(name, '2024-01-07'), [7]);
    assert.deepEqual(await filled('2024-01-04'), [42]);

    writeFileSync(
      file('lib/number.ts'),
      'export const numberOf = (key: string): number => 100 + Number(key.slice(-2));\n',
    );
    rmSync(file('pipelines/broken.sql'));
    await dev.says(/lib\/number\.ts changed.*: the worker starts again/);
    await until(async () => (await filled('2024-01-07', name, 'by_code'))[0] === 107);
  });

  /** As `filled`, for a pipeline that a worker has yet to read. */
  async function servedAs(name: string, key: string): Promise<unknown[]> {
    await until(async () => {
      const known = await bed.database.sql('SELECT FROM repave.pipeline WHERE name = $1', [name]);
      return known.length > 0;
    });
    return filled(key, name, 'by_code');
  }
});
