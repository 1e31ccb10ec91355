import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { type Bed, DAILY, makeBed } from '../support/bed.js';
import { testTemporal } from '../support/temporal.js';
import { createProject } from '../support/worker.js';
import { until } from '../workflows/scripted.js';
import { makeProject, startRepave } from './repave.js';

describe('following a backfill whose fills wait to be tried again', function () {
  // It is said once nothing has changed for a while, which attempts do ever more seldom.
  this.timeout(600_000);
  let bed: Bed;

  before(async () => {
    bed = await makeBed();
  });
  after(() => bed.close());

  it('says why, in one line, though several wait for the same', async () => {
    const keys = ['2024-01-01', '2024-01-02'];
    await bed.hold(...keys);
    const planner = await bed.worker();
    const handle = await bed.client.backfill({ pipeline: bed.pipeline, from: '2024-01-01', to: '2024-01-02' });
    await until(async () => (await handle.progress().catch(() => undefined))?.running.length === 2);
    await planner.kill();
    await bed.letGo(...keys);
    const changed = await createProject({ [`${bed.pipeline}.sql`]: DAILY.replace('count(*)', '100 + count(*)') });
    await bed.worker({ project: changed });

    const project = makeProject({});
    const watching = startRepave(project, ['watch', handle.id], {
      DATABASE_URL: bed.database.url,
      TEMPORAL_ADDRESS: (await testTemporal()).address,
      REPAVE_TASK_QUEUE: bed.taskQueue,
    });
    await watching.says(/2024-01-0[12] waits: WorkerOutdated: This worker has daily_\w+ with the fingerprint/);
    watching.process.kill('SIGINT');
    const { stderr } = await watching.ended;
    rmSync(project, { recursive: true, force: true });
    assert.equal(stderr.match(/WorkerOutdated/g)?.length, 1);
    await handle.cancel();
    await assert.rejects(handle.result(), { type: 'Cancelled' });
  });
});
