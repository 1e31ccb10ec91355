import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import type { TemporalServer } from '../../src/dev/temporal-server.js';
import { until } from '../support/fill.js';
import { startPrivateTemporal, testTemporal } from '../support/temporal.js';
import { shared } from '../support/servers.js';
import { fakeCli } from './fake-cli.js';

describe('the Temporal dev server', function () {
  this.timeout(600_000);
  const running: TemporalServer[] = [];
  const start = async (options: Parameters<typeof startPrivateTemporal>[0] = {}): Promise<TemporalServer> => {
    const server = await startPrivateTemporal(options);
    running.push(server);
    return server;
  };
  afterEach(async () => {
    for (const server of running.splice(0)) await server.kill();
  });

  it('passes over a CLI that brings no server up, and says what it said', async () => {
    const folder = mkdtempSync(join((await shared('folder')).dir, 'clis-'));
    mkdirSync(join(folder, 'bin'));
    symlinkSync((await testTemporal()).cli, join(folder, 'bin', 'temporal'));
    const broken = fakeCli(join(folder, 'broken'), '0.0.1 (Server 0.0.0)');
    const server = await start({ env: { PATH: join(folder, 'bin'), TEMPORAL_CLI_PATH: broken } });
    assert.equal(server.cli.path, join(folder, 'bin', 'temporal'));
    const tried = server.tried.join('\n');
    assert.match(
      tried,
      /TEMPORAL_CLI_PATH: .*0\.0\.1[^]*did not come up: code 7[^]*no server in here[^]*`temporal` on the PATH/,
    );
  });

  it('takes other ports, for itself and its UI, where those wished for are taken', async () => {
    const [one, two] = await Promise.all([listener(), listener()]);
    try {
      const server = await start({ port: port(one), uiPort: port(two), ui: true });
      assert.notEqual(server.address, `127.0.0.1:${port(one)}`);
      assert.notEqual(server.ui, `http://127.0.0.1:${port(two)}`);
      // It comes up beside the server.
      await until('its UI', async () => (await fetch(server.ui ?? '').catch(() => undefined))?.status === 200);
      await namespaceOf(server);
    } finally {
      one.close();
      two.close();
    }
  });

  it('has its state again after kill -9', async () => {
    const dir = mkdtempSync(join((await shared('folder')).dir, 'state-'));
    const first = await start({ dir });
    await using before = await client(first);
    const { workflowId } = await before.client.workflow.start('nobodyRunsIt', {
      taskQueue: 'none',
      workflowId: 'kept',
    });
    await first.kill();
    const second = await start({ dir });
    await using after = await client(second);
    assert.equal((await after.client.workflow.getHandle(workflowId).describe()).status.name, 'RUNNING');
  });

  it('stops a server that a killed run left running over the same state, and says so', async () => {
    const dir = mkdtempSync(join((await shared('folder')).dir, 'left-'));
    const left = await start({ dir });
    const said: string[] = [];
    const next = await start({ dir, say: (line) => said.push(line) });
    assert.match(said.join('\n'), new RegExp(`left behind \\(pid ${left.pid}\\) is stopped`));
    await left.ended;
    await namespaceOf(next);
  });

  it('leaves alone a process that merely has the number of one it started', async () => {
    const dir = mkdtempSync(join((await shared('folder')).dir, 'number-'));
    // This very process, under another start: were it ended, there would be no result.
    writeFileSync(join(dir, 'temporal.pid.json'), JSON.stringify({ pid: process.pid, started: 'long ago' }));
    const said: string[] = [];
    await start({ dir, say: (line) => said.push(line) });
    assert.deepEqual(said, []);
  });

  it('knows nothing of a server or a profile that the environment names', async () => {
    const server = await start({
      env: { ...process.env, TEMPORAL_ADDRESS: 'temporal.example:7233', TEMPORAL_PROFILE: 'nobody' },
    });
    await namespaceOf(server);
  });
});

async function client(server: TemporalServer): Promise<{ client: Client; [Symbol.asyncDispose](): Promise<void> }> {
  const connection = await Connection.connect({ address: server.address });
  return { client: new Client({ connection }), [Symbol.asyncDispose]: () => connection.close() };
}

async function namespaceOf(server: TemporalServer): Promise<void> {
  await using connected = await client(server);
  const { namespaceInfo } = await connected.client.workflowService.describeNamespace({ namespace: 'default' });
  assert.equal(namespaceInfo?.name, 'default');
}

async function listener(): Promise<Server> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return server;
}

function port(server: Server): number {
  const address = server.address();
  assert.ok(address !== null && typeof address === 'object');
  return address.port;
}
