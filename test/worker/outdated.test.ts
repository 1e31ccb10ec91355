import assert from 'node:assert/strict';
import type { PartitionHandle } from '../../src/client.js';
import { createTestDatabase } from '../support/database.js';
import { type Bed, DAILY, makeBed } from '../support/bed.js';
import { createProject } from '../support/worker.js';
import { until } from '../workflows/scripted.js';

const KEY = '2024-01-01';

describe('a fill that meets a worker it was not planned for', () => {
  let bed: Bed;

  beforeEach(async () => {
    bed = await makeBed();
    await bed.hold(KEY);
  });
  afterEach(() => bed.close());

  /** A fill that was planned by a worker which is gone. */
  async function orphaned({ held = false } = {}): Promise<PartitionHandle> {
    const planner = await bed.worker();
    const handle = await bed.client.partition({ pipeline: bed.pipeline, key: KEY });
    await until(async () => (await bed.sessionsOf(handle.runId ?? '')).some(({ state }) => state === 'active'));
    await planner.kill();
    if (!held) await bed.letGo(KEY);
    return handle;
  }

  async function lastFailure(handle: PartitionHandle): Promise<string | undefined> {
    const { raw } = await bed.client.temporal.workflow.getHandle(handle.id).describe();
    return raw.pendingActivities?.[0]?.lastFailure?.applicationFailureInfo?.type ?? undefined;
  }

  it('waits while the pipeline is another there, and is done by a worker that has the planned one', async () => {
    const handle = await orphaned();
    const changed = await createProject({ [`${bed.pipeline}.sql`]: DAILY.replace('count(*)', '100 + count(*)') });
    const outdated = await bed.worker({ project: changed });
    await until(async () => (await lastFailure(handle)) === 'WorkerOutdated');
    assert.deepEqual(await bed.database.sql('SELECT * FROM daily'), []);
    await outdated.kill();
    await bed.worker();
    await handle.result();
    assert.deepEqual(await bed.database.sql('SELECT n::int FROM daily'), [{ n: 3 }]);
  }).timeout(300_000);

  it('waits while there is no such pipeline there', async () => {
    const handle = await orphaned();
    const without = await bed.worker({ project: await createProject({ 'another.sql': DAILY }) });
    await until(async () => (await lastFailure(handle)) === 'WorkerOutdated');
    await without.kill();
    await bed.worker();
    assert.equal((await handle.result()).rows, 1);
  }).timeout(300_000);

  it('waits while the database there is another, and writes nothing to that', async () => {
    const handle = await orphaned();
    const other = await createTestDatabase();
    await other.sql('CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL)');
    // Databases of tests are copies of one, its ledger's id included.
    await other.sql('UPDATE repave.ledger SET id = gen_random_uuid()');
    const wrong = await bed.worker({ databaseUrl: other.url });
    await until(async () => (await lastFailure(handle)) === 'WrongLedger');
    assert.deepEqual(await other.sql('SELECT * FROM daily'), []);
    assert.deepEqual(await other.sql('SELECT * FROM repave.claim'), []);
    await wrong.kill();
    await other.drop();
    await bed.worker();
    assert.equal((await handle.result()).rows, 1);
  }).timeout(300_000);

  it('is not called ended by a worker of another database when it is cancelled', async () => {
    const handle = await orphaned({ held: true });
    const other = await createTestDatabase();
    await other.sql('CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL)');
    await other.sql('UPDATE repave.ledger SET id = gen_random_uuid()');
    const wrong = await bed.worker({ databaseUrl: other.url });
    await handle.cancel();
    await until(async () => (await lastFailure(handle)) === 'WrongLedger' && wrong.log().includes('endFill'));
    assert.deepEqual(await other.sql('SELECT * FROM repave.claim'), []);
    await wrong.kill();
    await other.drop();
    await bed.worker();
    await assert.rejects(handle.result(), { type: 'Cancelled' });
    assert.deepEqual(await bed.sessionsOf(handle.runId ?? ''), []);
    assert.deepEqual(await bed.database.sql('SELECT closed FROM repave.claim'), [{ closed: true }]);
  }).timeout(300_000);
});
