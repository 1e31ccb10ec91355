import assert from 'node:assert/strict';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type Bed, DAILY, makeBed } from '../support/bed.js';
import { createProject, startWorker, type WorkerProcess } from '../support/worker.js';
import { uniqueQueue } from '../support/workflow.js';

/** A port where nobody listens: none that another test's server is given meanwhile. */
const CLOSED_PORT = 1;

/** The lines of a log that are as bad as `fatal`. */
function fatal(worker: WorkerProcess): string[] {
  const lines = worker.log().trim().split('\n');
  return lines
    .map((line) => JSON.parse(line) as { level: string; msg: string })
    .flatMap(({ level, msg }) => (level === 'fatal' ? [msg] : []));
}

describe('a worker that cannot start', () => {
  let project: string;
  let database: TestDatabase;

  before(async () => {
    project = await createProject({ 'daily.sql': DAILY });
    database = await createTestDatabase({ ledger: false });
  });
  after(() => database.drop());

  async function ends(
    options: { databaseUrl?: string; temporalAddress?: string; env?: Record<string, string>; project?: string } = {},
  ): Promise<{ code: number | NodeJS.Signals; said: string }> {
    const worker = await startWorker({
      databaseUrl: database.ownerUrl,
      project,
      taskQueue: uniqueQueue(),
      waitUntilReady: false,
      ...options,
      env: { REPAVE_CONNECT_WAIT: '1', ...options.env },
    });
    const code = await worker.exited;
    const [said = '', ...more] = fatal(worker);
    assert.deepEqual(more, []);
    assert.doesNotMatch(worker.log(), /hunter2/);
    return { code, said };
  }

  it('exits 3 where the database cannot be reached, and names it without the password', async () => {
    const { code, said } = await ends({ databaseUrl: `postgres://me:hunter2@127.0.0.1:${CLOSED_PORT}/shop` });
    assert.equal(code, 3);
    assert.match(said, /127\.0\.0\.1:1\b/);
  });

  it('exits 3 where the Temporal server cannot be reached, and names it', async () => {
    const address = `127.0.0.1:${CLOSED_PORT}`;
    const { code, said } = await ends({ temporalAddress: address });
    assert.equal(code, 3);
    assert.ok(said.includes(address) && said.includes('TEMPORAL_ADDRESS'), said);
  });

  it('exits 2 where no database is named', async () => {
    const { code, said } = await ends({ databaseUrl: '' });
    assert.equal(code, 2);
    assert.match(said, /DATABASE_URL/);
  });

  it('exits 2 where a setting is wrong, and names it', async () => {
    const { code, said } = await ends({ env: { REPAVE_FILLS: 'many' } });
    assert.equal(code, 2);
    assert.match(said, /REPAVE_FILLS is "many"/);
  });

  it('exits 2 with the command to run where its role may not make the missing ledger', async () => {
    const bare = await createTestDatabase({ ledger: false });
    try {
      const { code, said } = await ends({ databaseUrl: bare.url });
      assert.equal(code, 2);
      assert.match(said, /missing.*`repave migrate`.*REPAVE_MIGRATE_URL/);
      assert.deepEqual(await bare.sql(`SELECT FROM pg_namespace WHERE nspname = 'repave'`), []);
    } finally {
      await bare.drop();
    }
  });

  it('exits 2 where the ledger is of a newer version', async () => {
    const newer = await createTestDatabase();
    try {
      await newer.sql(`INSERT INTO repave.migration (number, name) VALUES (999999, 'to come')`);
      const { code, said } = await ends({ databaseUrl: newer.ownerUrl });
      assert.equal(code, 2);
      assert.match(said, /newer/);
    } finally {
      await newer.drop();
    }
  });
});

describe('a worker that starts', () => {
  let bed: Bed;

  before(
    async () =>
      (bed = await makeBed({
        files: {
          'broken.sql': '-- repave\n-- target: nowhere\nSELECT 1 AS x\n',
          'rival.sql': DAILY.replace(':date AS day', ':date AS day '),
          'elsewhere.sql': DAILY.replace('-- start', '-- database: OTHER_URL\n-- start'),
        },
      })),
  );
  after(() => bed.close());

  it('makes the ledger where its role may', async () => {
    const empty = await createTestDatabase({ ledger: false });
    await empty.sql('CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL)');
    const worker = await startWorker({
      databaseUrl: empty.ownerUrl,
      taskQueue: uniqueQueue(),
      project: await createProject({ 'daily.sql': DAILY }),
    });
    const registered = await empty.sql('SELECT name FROM repave.pipeline');
    assert.equal(await worker.stop(), 0);
    await empty.drop();
    assert.deepEqual(registered, [{ name: 'daily' }]);
  });

  it('serves what it can, and says of the rest why not', async () => {
    const worker = await bed.worker();
    const ready =
      worker
        .log()
        .split('\n')
        .find((line) => line.includes('Worker is ready')) ?? '';
    const { pipelines } = JSON.parse(ready) as { pipelines: string[] };
    // Of two pipelines on one target the first to be registered is served.
    assert.deepEqual(pipelines, [bed.pipeline]);
    const good = await bed.client.backfill({ pipeline: bed.pipeline, from: '2024-01-01', to: '2024-01-03' });
    assert.equal((await good.result()).filled, 3);
    const reasons = { broken: /partition/, rival: new RegExp(bed.pipeline), elsewhere: /OTHER_URL/ };
    for (const [pipeline, reason] of Object.entries(reasons)) {
      const handle = await bed.client.backfill(
        { pipeline, from: '2024-01-01' },
        { id: `${bed.taskQueue}/${pipeline}` },
      );
      await assert.rejects(handle.result(), { type: 'InvalidPipeline', message: reason });
    }
  });
});

describe('a pipeline whose target is not there when the worker starts', () => {
  let bed: Bed;

  before(async () => {
    bed = await makeBed();
    await bed.database.sql('DROP TABLE daily');
  });
  after(() => bed.close());

  it('is served by the same worker once it is', async () => {
    const worker = await bed.worker();
    assert.match(worker.log(), /is not served: .*daily/);
    const range = { pipeline: bed.pipeline, from: '2024-01-01', to: '2024-01-02' };
    const early = await bed.client.backfill(range);
    await assert.rejects(early.result(), { message: /daily/ });
    await bed.database.sql('CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL)');
    const late = await bed.client.backfill(range);
    assert.equal((await late.result()).filled, 2);
    const [first] = await bed.database.sql('SELECT name FROM repave.pipeline');
    assert.deepEqual(first, { name: bed.pipeline });
  });
});
