import assert from 'node:assert/strict';
import type { PartitionHandle } from '../../src/client.js';
import { type Bed, makeBed } from '../support/bed.js';
import { until } from '../workflows/scripted.js';

const KEY = '2024-01-01';

describe('SIGTERM in the middle of a fill', () => {
  let bed: Bed;

  beforeEach(async () => {
    bed = await makeBed();
    await bed.hold(KEY);
  });
  afterEach(() => bed.close());

  async function inTheMiddle(): Promise<PartitionHandle> {
    const handle = await bed.client.partition({ pipeline: bed.pipeline, key: KEY });
    await until(async () => (await bed.sessionsOf(handle.runId ?? '')).some(({ state }) => state === 'active'));
    return handle;
  }

  it('lets the fill end within its grace', async () => {
    const worker = await bed.worker({ env: { REPAVE_SHUTDOWN_GRACE: '60' } });
    const handle = await inTheMiddle();
    const stopped = worker.stop();
    await until(() => worker.log().includes('Stopping'));
    await bed.letGo(KEY);
    assert.equal(await stopped, 0);
    assert.deepEqual(await bed.database.sql('SELECT attempt FROM repave.fill'), [{ attempt: 1 }]);
    // The fill is done; the workflow's last step needs a worker again.
    await bed.worker();
    assert.equal((await handle.result()).rows, 1);
    assert.deepEqual(await bed.database.sql('SELECT n::int FROM daily'), [{ n: 3 }]);
  });

  it('rolls the fill back after its grace, for another worker to do once', async () => {
    const worker = await bed.worker({ env: { REPAVE_SHUTDOWN_GRACE: '2' } });
    const handle = await inTheMiddle();
    assert.equal(await worker.stop(), 0);
    assert.deepEqual(await bed.sessionsOf(handle.runId ?? ''), []);
    assert.deepEqual(await bed.database.sql('SELECT key FROM repave.fill'), []);
    await bed.letGo(KEY);
    await bed.worker();
    await handle.result();
    assert.deepEqual(await bed.database.sql('SELECT attempt > 1 AS again FROM repave.fill'), [{ again: true }]);
    assert.deepEqual(await bed.database.sql('SELECT n::int FROM daily'), [{ n: 3 }]);
  });

  it('ends at once when asked twice', async () => {
    const worker = await bed.worker({ env: { REPAVE_SHUTDOWN_GRACE: '3600' } });
    await inTheMiddle();
    worker.signal('SIGTERM');
    await until(() => worker.log().includes('Stopping'));
    worker.signal('SIGTERM');
    assert.equal(await worker.exited, 130);
  });
});
