import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { deploy } from '../../src/cli/deploy.js';
import { connectRepave, type RepaveClient } from '../../src/client.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import { until } from '../chaos/until.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { testTemporal } from '../support/temporal.js';
import { uniqueQueue } from '../support/workflow.js';
import { keptContext, type KeptContext } from './plan-context.js';
import { makeProject } from './repave.js';

const MARK = randomBytes(4).toString('hex');
/** Of this test alone, since ids of schedules hold it. */
const [SALES, RATES, STOCK] = [`sales_${MARK}`, `rates_${MARK}`, `stock_${MARK}`];

const file = (...settings: readonly string[]): string =>
  ['-- repave', '-- target: t', '-- partition: { column: day, by: day }', ...settings, 'SELECT :date AS day', ''].join(
    '\n',
  );
const SCHEDULED = file('-- schedule: 15 2 * * *');

/** What a `deploy` has come to. */
interface Deployed {
  readonly code: number;
  readonly changes: readonly string[];
  readonly leftAlone: readonly { readonly pipeline: string; readonly why: string }[];
  readonly stderr: string;
}

describe('repave deploy, with two projects on one task queue', function () {
  this.timeout(600_000);
  const taskQueue = uniqueQueue();
  const projects: string[] = [];
  let client: RepaveClient;
  let address: string;
  let ours: TestDatabase;
  let theirs: TestDatabase;
  const context = (project: string, databaseUrl: string): KeptContext =>
    keptContext(
      project,
      { TEMPORAL_ADDRESS: address, REPAVE_TASK_QUEUE: taskQueue, DATABASE_URL: databaseUrl },
      { json: true },
    );
  const deployed = async (project: string, databaseUrl: string, yes = false): Promise<Deployed> => {
    const kept = context(project, databaseUrl);
    const code = await deploy(kept, yes);
    const { changes, leftAlone } = JSON.parse(kept.stdout()) as {
      changes: { kind: string; pipeline: string }[];
      leftAlone: Deployed['leftAlone'];
    };
    return { code, leftAlone, changes: changes.map((one) => `${one.kind} ${one.pipeline}`), stderr: kept.stderr() };
  };
  /** Temporal's own list of what is there lags a little. */
  const listed = (...names: readonly string[]): Promise<unknown> =>
    until(`a list of ${names.join(', ')}`, async () => {
      const seen = await client.schedules.list();
      return seen.map((one) => one.pipeline).join() === [...names].sort().join();
    });
  const project = (files: Readonly<Record<string, string>>): string => {
    const folder = makeProject(files);
    projects.push(folder);
    return folder;
  };

  before(async () => {
    ({ address } = await testTemporal());
    client = await connectRepave({ settings: loadSettings(onlyThisServer(address)), taskQueue });
    [ours, theirs] = await Promise.all([createTestDatabase(), createTestDatabase()]);
    // A clone has the template's ledger with its id.
    for (const database of [ours, theirs]) await database.sql('UPDATE repave.ledger SET id = gen_random_uuid()');
  });
  after(async () => {
    for (const name of [SALES, RATES, STOCK]) await client.schedules.remove(name).catch(() => undefined);
    await client.close();
    await Promise.all([ours.drop(), theirs.drop()]);
    for (const folder of projects) rmSync(folder, { recursive: true, force: true });
  });

  it('removes none that was made for the other’s ledger, and says how it would go', async () => {
    const sales = project({ [`pipelines/${SALES}.sql`]: SCHEDULED });
    const rates = project({ [`pipelines/${RATES}.sql`]: SCHEDULED });
    assert.deepEqual((await deployed(sales, ours.url, true)).changes, [`added ${SALES}`]);
    await listed(SALES);

    const other = await deployed(rates, theirs.url, true);
    assert.deepEqual([other.code, other.changes], [0, [`added ${RATES}`]]);
    assert.deepEqual(
      other.leftAlone.map(({ pipeline }) => pipeline),
      [SALES],
    );
    assert.match(other.leftAlone[0]?.why ?? '', new RegExp(`another project’s.*repave schedule remove ${SALES}`));
    await listed(RATES, SALES);

    for (const [folder, { url }] of [
      [sales, ours],
      [rates, theirs],
    ] as const) {
      const again = await deployed(folder, url, true);
      assert.deepEqual([again.code, again.changes], [0, []]);
      assert.match(again.stderr, /Nothing to do/);
    }
    await listed(RATES, SALES);
  });

  it('removes none while the ledger cannot be asked, and says so', async () => {
    const without = project({ [`pipelines/${SALES}.sql`]: file() });
    const { code, changes, leftAlone, stderr } = await deployed(without, 'postgres://127.0.0.1:1/nowhere', true);
    assert.deepEqual([code, changes, leftAlone.length], [0, [], 2]);
    assert.match(stderr, /The ledger of DATABASE_URL was not asked: /);
    await listed(RATES, SALES);
  });

  it('keeps what says for which ledger it was made where that cannot be asked', async () => {
    const changed = project({ [`pipelines/${SALES}.sql`]: file('-- schedule: 30 2 * * *') });
    const away = await deployed(changed, 'postgres://127.0.0.1:1/nowhere', true);
    assert.deepEqual(away.changes, [`changed ${SALES}`]);
    const other = await deployed(project({ [`pipelines/${RATES}.sql`]: SCHEDULED }), theirs.url, true);
    assert.deepEqual(other.changes, []);
  });

  it('marks one that says no ledger, and one that was made for another, and then has nothing to do', async () => {
    await client.schedules.add({
      ...{ pipeline: STOCK, cron: '15 2 * * *', zone: 'UTC', last: 1, healsChanged: false, keeper: 'deploy' },
    });
    await listed(RATES, SALES, STOCK);
    for (const [own, { url }] of [
      [RATES, theirs],
      [SALES, ours],
    ] as const) {
      const stock = project({ [`pipelines/${STOCK}.sql`]: SCHEDULED, [`pipelines/${own}.sql`]: SCHEDULED });
      const marked = async () => (await deployed(stock, url, true)).changes.filter((change) => change.endsWith(STOCK));
      assert.deepEqual([await marked(), await marked()], [[`changed ${STOCK}`], []]);
    }
    await client.schedules.remove(STOCK);
    await listed(RATES, SALES);
  });

  it('removes its own, as one that says no ledger', async () => {
    await client.schedules.add({
      ...{ pipeline: STOCK, cron: '5 4 * * *', zone: 'UTC', last: 1, healsChanged: false, keeper: 'deploy' },
    });
    await listed(RATES, SALES, STOCK);
    const without = project({ [`pipelines/${SALES}.sql`]: file() });
    const { code, changes, leftAlone } = await deployed(without, ours.url, true);
    assert.deepEqual([code, changes], [0, [`removed ${SALES}`, `removed ${STOCK}`]]);
    assert.deepEqual(
      leftAlone.map(({ pipeline }) => pipeline),
      [RATES],
    );
    await listed(RATES);
  });

  it('asks again for which ledger one was made before it removes it', async () => {
    const rates = project({ [`pipelines/${join(RATES)}.sql`]: file() });
    const [change] = (await client.schedules.compare([], [], [(await ledger(theirs)) ?? ''])).changes;
    assert.equal(change?.kind, 'removed');
    // Between the look and the change, the other project has made it.
    await client.schedules.remove(RATES);
    const sales = project({ [`pipelines/${RATES}.sql`]: SCHEDULED });
    await deployed(sales, ours.url, true);
    await assert.rejects(client.schedules.apply(change), { message: /made by somebody else just now/ });
    await listed(RATES);
    assert.equal((await deployed(rates, ours.url, true)).code, 0);
  });

  const ledger = async (database: TestDatabase): Promise<string | undefined> =>
    (await database.sql<{ id: string }>('SELECT id::text FROM repave.ledger'))[0]?.id;
});
