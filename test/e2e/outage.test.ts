import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectRepave, type RepaveClient } from '../../src/client.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import type { PostgresServer } from '../../src/dev/postgres.js';
import { until } from '../chaos/until.js';
import { startPrivatePostgres } from '../support/database.js';
import { withClient } from '../support/template.js';
import { testTemporal } from '../support/temporal.js';
import { createProject, startWorker, type WorkerProcess } from '../support/worker.js';
import { uniqueQueue } from '../support/workflow.js';

const KEY = '2024-03-01';
const NAME = 'outage';

/** Throws at its first call, waits for the test at its second, and has two tries: one more fault would be its last. */
const PIPELINE = `
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { definePipeline } from 'repave';
const project = process.env.REPAVE_PROJECT ?? '';
export default definePipeline({
  target: 'target',
  partition: { column: 'day', by: 'day' },
  retry: { attempts: 2 },
  async *rows({ key }) {
    const call = readdirSync(project).filter((name) => name.startsWith('call ')).length + 1;
    writeFileSync(join(project, 'call ' + call), '');
    if (call === 1) throw new Error('the source is away');
    while (call === 2 && !existsSync(join(project, 'go on'))) await new Promise((go) => setTimeout(go, 20));
    yield { day: key };
  },
});
`;

describe('a database that is away for a while', function () {
  this.timeout(600_000);
  let postgres: PostgresServer;
  let worker: WorkerProcess;
  let client: RepaveClient;
  let project: string;

  before(async () => {
    [postgres, project] = await Promise.all([startPrivatePostgres(), createProject({ [`${NAME}.ts`]: PIPELINE })]);
    await sql('CREATE TABLE target (day date NOT NULL)');
    const settings = loadSettings(onlyThisServer((await testTemporal()).address));
    client = await connectRepave({ settings, taskQueue: uniqueQueue() });
    worker = await startWorker({ databaseUrl: postgres.url(), taskQueue: client.taskQueue, project });
  });
  after(async () => {
    await worker.kill();
    await client.close();
    await postgres.stop('immediate');
  });

  it('uses up none of the pipeline’s tries, while the source’s own fault used up one', async () => {
    const handle = await client.partition({ pipeline: NAME, key: KEY });
    await until('the second call of the source', async () => existsSync(join(project, 'call 2')));
    assert.deepEqual(await sql('SELECT faults FROM repave.claim'), [{ faults: 1 }]);

    await postgres.stop();
    writeFileSync(join(project, 'go on'), '');
    // The second attempt, and more than the pipeline has tries, fail for the database's sake.
    const said = await until('attempts in vain', async () => {
      const { raw } = await client.temporal.workflow.getHandle(`${NAME}/${KEY}`).describe();
      const [fill] = raw.pendingActivities ?? [];
      return (fill?.attempt ?? 0) >= 5 && (fill?.lastFailure ?? undefined);
    });
    assert.equal(said.applicationFailureInfo?.type, 'DatabaseUnavailable');
    const port = String(postgres.port);
    assert.match(said.message ?? '', new RegExp(`127\\.0\\.0\\.1:${port}`));

    // Another test may have been given its port meanwhile, for a while.
    const { dir, port: own } = postgres;
    postgres = await until('its port to be free', async () => {
      const again = await startPrivatePostgres({ dir, port: own });
      if (again.port === own) return again;
      await again.stop();
      return undefined;
    });
    assert.equal((await handle.result()).rows, 1);
    assert.deepEqual(await sql('SELECT rows_inserted::int AS rows FROM repave.fill'), [{ rows: 1 }]);
    assert.deepEqual(await sql('SELECT FROM repave.failure'), []);
    assert.ok(!worker.log().includes(password()), 'the log holds no password');
  });

  const sql = (text: string): Promise<unknown[]> =>
    withClient(postgres.url(), async (connected) => (await connected.query<object>(text)).rows);
  const password = (): string => readFileSync(join(postgres.dir, 'password'), 'utf8').trim();
});
