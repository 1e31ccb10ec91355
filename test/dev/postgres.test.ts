import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type PostgresServer, startPostgres } from '../../src/dev/postgres.js';
import { postgresBinaries } from '../../src/dev/postgres-binaries.js';
import { serverUser } from '../../src/dev/server-user.js';
import { stateFolders } from '../../src/dev/state-folder.js';
import { startPrivatePostgres } from '../support/database.js';
import { shared } from '../support/servers.js';
import { withClient } from '../support/template.js';

describe('the embedded PostgreSQL', function () {
  this.timeout(600_000);
  const running: PostgresServer[] = [];
  const start = async (options: Parameters<typeof startPrivatePostgres>[0] = {}): Promise<PostgresServer> => {
    const server = await startPrivatePostgres(options);
    running.push(server);
    return server;
  };
  afterEach(async () => {
    for (const server of running.splice(0)) await server.stop('immediate');
  });

  it('is version 18, on the loopback alone, and lets nobody in without the password', async () => {
    const server = await start();
    await withClient(server.url(), async (client) => {
      const { rows } = await client.query(
        "SELECT current_setting('listen_addresses') AS at, current_setting('server_version_num')::int / 10000 AS version",
      );
      assert.deepEqual(rows, [{ at: '127.0.0.1', version: 18 }]);
    });
    await assert.rejects(
      withClient(server.url().replace(/:[0-9a-f]+@/, ':wrong@'), () => Promise.resolve()),
      /password authentication failed/,
    );
  });

  it('runs as postgres or nobody where we are root, else as ourselves', async () => {
    const server = await start();
    const uid = Number(execFileSync('ps', ['-o', 'uid=', '-p', String(server.pid)], { encoding: 'utf8' }));
    if (process.getuid?.() === 0) {
      assert.notEqual(uid, 0);
      assert.ok(['postgres', 'nobody'].includes(serverUser()?.name ?? ''));
      assert.equal(uid, serverUser()?.uid);
    } else {
      assert.equal(uid, process.getuid?.());
    }
  });

  it('starts again after kill -9, with what was committed', async () => {
    const first = await start();
    await withClient(first.url(), async (client) => {
      await client.query('CREATE TABLE kept AS SELECT 42 AS n');
    });
    await first.kill();
    assert.ok(existsSync(join(first.dir, 'data', 'postmaster.pid')), 'a killed server leaves its pid file');
    const second = await start({ dir: first.dir });
    await withClient(second.url(), async (client) => {
      assert.deepEqual((await client.query('SELECT n FROM kept')).rows, [{ n: 42 }]);
    });
  });

  it('stops a server that a killed run left running over the same cluster, and says so', async () => {
    const left = await start();
    const said: string[] = [];
    const next = await start({ dir: left.dir, say: (line) => said.push(line) });
    assert.notEqual(next.pid, left.pid);
    assert.match(said.join('\n'), new RegExp(`left behind \\(pid ${left.pid}\\) is stopped`));
    await left.ended;
  });

  it('is not kept from starting by a stale pid file whose number another process has now', async () => {
    const first = await start();
    await first.stop();
    // This process is no PostgreSQL, and must live on.
    writeFileSync(
      join(first.dir, 'data', 'postmaster.pid'),
      `${process.ppid}\n${join(first.dir, 'data')}\n1\n${first.port}\n\n127.0.0.1\n  1 1\nready   \n`,
    );
    await start({ dir: first.dir });
    process.kill(process.ppid, 0);
  });

  it('makes its cluster anew where a kill left half of one', async () => {
    const dir = mkdtempSync(join((await shared('folder')).dir, 'half-'));
    mkdirSync(join(dir, 'data.99999', 'base'), { recursive: true });
    writeFileSync(join(dir, 'data.99999', 'PG_VERSION'), '18\n');
    writeFileSync(join(dir, 'password'), 'of the cluster that never was\n');
    const server = await start({ dir, template: undefined, sync: false });
    await withClient(server.url(), async (client) => {
      assert.equal((await client.query('SELECT 1 AS one')).rowCount, 1);
    });
    assert.deepEqual(
      readdirSync(dir).filter((name) => name.startsWith('data')),
      ['data'],
    );
  });

  it('refuses a cluster of another version', async () => {
    const dir = mkdtempSync(join((await shared('folder')).dir, 'old-'));
    mkdirSync(join(dir, 'data'));
    writeFileSync(join(dir, 'data', 'PG_VERSION'), '15\n');
    await assert.rejects(start({ dir }), /made by PostgreSQL 15, and PostgreSQL 18\S* can't read it/);
  });

  it('takes another port where the one wished for is taken', async () => {
    const other = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => other.once('listening', resolve));
    const address = other.address();
    assert.ok(address !== null && typeof address === 'object');
    try {
      const server = await start({ port: address.port });
      assert.notEqual(server.port, address.port);
      await withClient(server.url(), () => Promise.resolve());
    } finally {
      other.close();
    }
  });

  it('says with the log why it could not start', async () => {
    await assert.rejects(
      start({ settings: { max_connections: 'plenty' } }),
      /did not start \(code 1\)[^]*invalid value for parameter "max_connections"/,
    );
  });

  it('makes the links that npm packages cannot hold', () => {
    const { postgres } = postgresBinaries(serverUser(), join(tmpdir(), 'repave-postgres'), () => undefined);
    // A library that no server loads, so that others may start meanwhile.
    const link = join(dirname(dirname(postgres)), 'lib', 'libpgtypes.so');
    rmSync(link, { force: true });
    postgresBinaries(serverUser(), join(tmpdir(), 'repave-postgres'), () => undefined);
    assert.ok(lstatSync(link).isSymbolicLink());
    assert.ok(existsSync(link), 'the link leads somewhere');
  });

  it('is copied, and this is said, where its user cannot reach what npm brought', async () => {
    const closed = mkdtempSync(join(tmpdir(), 'repave-closed-'));
    const elsewhere = mkdtempSync(join((await shared('folder')).dir, 'elsewhere-'));
    chmodSync(closed, 0o700);
    chmodSync(elsewhere, 0o755);
    try {
      const { postgres } = postgresBinaries(serverUser(), elsewhere, () => undefined);
      cpSync(dirname(dirname(dirname(postgres))), join(closed, 'package'), { recursive: true, verbatimSymlinks: true });
      const said: string[] = [];
      const found = postgresBinaries(serverUser(), elsewhere, (line) => said.push(line), join(closed, 'package'));
      if (process.getuid?.() === 0) {
        assert.ok(found.postgres.startsWith(elsewhere));
        assert.match(said.join('\n'), /can't run PostgreSQL in .*: it is copied to /);
      } else {
        assert.ok(found.postgres.startsWith(closed));
      }
      assert.match(execFileSync(found.initdb, ['--version'], { encoding: 'utf8' }), /PostgreSQL\) 18/);
    } finally {
      rmSync(closed, { recursive: true, force: true });
    }
  });

  it('keeps its cluster elsewhere, and says so, where its user cannot reach the checkout', async () => {
    const closed = mkdtempSync(join(tmpdir(), 'repave-closed-'));
    const elsewhere = mkdtempSync(join((await shared('folder')).dir, 'elsewhere-'));
    chmodSync(closed, 0o700);
    chmodSync(elsewhere, 0o755);
    try {
      const said: string[] = [];
      const stateDir = join(closed, 'project', '.repave');
      const folders = stateFolders(stateDir, (line) => said.push(line), elsewhere);
      const server = await startPostgres({ dir: folders.postgres, binariesDir: folders.binaries, sync: false });
      running.push(server);
      await withClient(server.url(), () => Promise.resolve());
      if (process.getuid?.() === 0) {
        assert.ok(folders.postgres.startsWith(elsewhere));
        assert.match(said.join('\n'), /can't reach .*\.repave: its cluster is kept in /);
      } else {
        assert.equal(folders.postgres, join(stateDir, 'postgres'));
        assert.deepEqual(said, []);
      }
    } finally {
      for (const server of running.splice(0)) await server.stop('immediate');
      rmSync(closed, { recursive: true, force: true });
    }
  });
});
