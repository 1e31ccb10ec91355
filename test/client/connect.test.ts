import assert from 'node:assert/strict';
import { hostname, userInfo } from 'node:os';
import type { Connection } from '@temporalio/client';
import { connectRepave } from '../../src/client.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import { testTemporal } from '../support/temporal.js';

describe('a client that is given an address', () => {
  /** What the environment says, of a server that nobody is to ask. */
  const settings = (more: Record<string, string>) =>
    loadSettings({ ...onlyThisServer('elsewhere.invalid:7233'), ...more });

  it('asks that server, in the namespace of the environment, unless that is given too', async () => {
    const { address } = await testTemporal();
    const said = settings({ TEMPORAL_NAMESPACE: 'ops' });
    for (const [options, namespace] of [
      [{}, 'ops'],
      [{ namespace: 'default' }, 'default'],
    ] as const) {
      const client = await connectRepave({ address, settings: said, ...options });
      assert.equal(client.temporal.options.namespace, namespace);
      await client.temporal.connection.workflowService.getSystemInfo({});
      await client.close();
    }
  });

  it('says who it is: user and machine, and that it is Repave’s, whichever connection it has', async () => {
    const { address } = await testTemporal();
    const own = await connectRepave({ address, settings: settings({}) });
    const given = await connectRepave({ connection: own.temporal.connection as Connection });
    for (const { temporal } of [own, given]) {
      assert.equal(temporal.options.identity, `${userInfo().username}@${hostname()} (repave)`);
    }
    await own.close();
  });

  it('goes on using the key of the environment, and so TLS, which this server does not speak', async () => {
    const { address } = await testTemporal();
    await assert.rejects(connectRepave({ address, settings: settings({ TEMPORAL_API_KEY: 'hunter2' }) }), {
      name: 'ServerUnreachable',
      message: new RegExp(address),
    });
  });
});
