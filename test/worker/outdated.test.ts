import assert from 'node:assert/strict';
import { atOnce } from '../chaos/at-once.js';
import type { PartitionHandle } from '../../src/client.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type Bed, DAILY, makeBed } from '../support/bed.js';
import { createProject } from '../support/worker.js';
import { until } from '../workflows/scripted.js';

const KEY = '2024-01-01';

/** A fill that was planned by a worker which is gone. */
interface Orphan {
  readonly bed: Bed;
  readonly handle: PartitionHandle;
}

describe('a fill that meets a worker it was not planned for', function () {
  this.timeout(600_000);

  atOnce({
    'waits while the pipeline is another there, and is done by a worker that has the planned one': () =>
      orphaned(async ({ bed, handle }) => {
        await bed.letGo(KEY);
        const changed = await createProject({ [`${bed.pipeline}.sql`]: DAILY.replace('count(*)', '100 + count(*)') });
        const outdated = await bed.worker({ project: changed });
        await until(async () => (await lastFailure({ bed, handle })) === 'WorkerOutdated');
        assert.deepEqual(await bed.database.sql('SELECT * FROM daily'), []);
        await outdated.kill();
        await bed.worker();
        await handle.result();
        assert.deepEqual(await bed.database.sql('SELECT n::int FROM daily'), [{ n: 3 }]);
      }),

    'waits while there is no such pipeline there': () =>
      orphaned(async ({ bed, handle }) => {
        await bed.letGo(KEY);
        const without = await bed.worker({ project: await createProject({ 'another.sql': DAILY }) });
        await until(async () => (await lastFailure({ bed, handle })) === 'WorkerOutdated');
        await without.kill();
        await bed.worker();
        assert.equal((await handle.result()).rows, 1);
      }),

    'waits while the database there is another, and writes nothing to that': () =>
      orphaned(async ({ bed, handle }) => {
        await bed.letGo(KEY);
        const other = await anotherDatabase();
        const wrong = await bed.worker({ databaseUrl: other.url });
        await until(async () => (await lastFailure({ bed, handle })) === 'WrongLedger');
        assert.deepEqual(await other.sql('SELECT * FROM daily'), []);
        assert.deepEqual(await other.sql('SELECT * FROM repave.claim'), []);
        await wrong.kill();
        await other.drop();
        await bed.worker();
        assert.equal((await handle.result()).rows, 1);
      }),

    'is not called ended by a worker of another database when it is cancelled': () =>
      orphaned(async ({ bed, handle }) => {
        const other = await anotherDatabase();
        const wrong = await bed.worker({ databaseUrl: other.url });
        await handle.cancel();
        await until(
          async () => (await lastFailure({ bed, handle })) === 'WrongLedger' && wrong.log().includes('endFill'),
        );
        assert.deepEqual(await other.sql('SELECT * FROM repave.claim'), []);
        await wrong.kill();
        await other.drop();
        await bed.worker();
        await assert.rejects(handle.result(), { type: 'Cancelled' });
        assert.deepEqual(await bed.sessionsOf(handle.runId ?? ''), []);
        assert.deepEqual(await bed.database.sql('SELECT closed FROM repave.claim'), [{ closed: true }]);
      }),
  });
});

/** Has a worker plan a fill, and kills it in the middle of its SQL, where it is held. */
async function orphaned(test: (orphan: Orphan) => Promise<void>): Promise<void> {
  const bed = await makeBed();
  try {
    await bed.hold(KEY);
    const planner = await bed.worker();
    const handle = await bed.client.partition({ pipeline: bed.pipeline, key: KEY });
    await until(async () => (await bed.sessionsOf(handle.runId ?? '')).some(({ state }) => state === 'active'));
    await planner.kill();
    await test({ bed, handle });
  } finally {
    await bed.close();
  }
}

/** A database of another installation: those of tests are copies of one, its ledger's id included. */
async function anotherDatabase(): Promise<TestDatabase> {
  const other = await createTestDatabase();
  await other.sql('CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL)');
  await other.sql('UPDATE repave.ledger SET id = gen_random_uuid()');
  return other;
}

async function lastFailure({ bed, handle }: Orphan): Promise<string | undefined> {
  const { raw } = await bed.client.temporal.workflow.getHandle(handle.id).describe();
  return raw.pendingActivities?.[0]?.lastFailure?.applicationFailureInfo?.type ?? undefined;
}
