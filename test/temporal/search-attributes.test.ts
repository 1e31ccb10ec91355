import assert from 'node:assert/strict';
import { isDeepStrictEqual } from 'node:util';
import type { Client } from '@temporalio/client';
import { NativeConnection } from '@temporalio/worker';
import { SEARCH_ATTRIBUTES } from '../../src/contract.js';
import {
  createCommand,
  registerSearchAttributes,
  type SearchAttributesConnection,
  type SearchAttributesState,
  searchAttributesState,
} from '../../src/temporal/search-attributes.js';
import { until } from '../chaos/until.js';
import { createNamespace, temporal } from '../e2e/temporal-cli.js';
import { testTemporal } from '../support/temporal.js';
import { silenceRuntime, testClient } from '../support/workflow.js';

const NAMES = Object.values(SEARCH_ATTRIBUTES);

describe('the search attributes of a namespace', function () {
  this.timeout(180_000);
  let client: Client;
  before(async () => {
    silenceRuntime();
    client = await testClient();
  });
  after(() => client.connection.close());

  it('are added where they are missing, by a client or a worker, and not again', async () => {
    const { address } = await testTemporal();
    const native = await NativeConnection.connect({ address });
    try {
      for (const connection of [client.connection, native]) {
        const namespace = await createNamespace();
        assert.deepEqual(await searchAttributesState(connection, namespace), {
          state: 'incomplete',
          missing: NAMES,
          otherType: [],
        });
        assert.deepEqual(await registerSearchAttributes(connection, namespace), {
          added: NAMES,
          now: { state: 'there' },
        });
        assert.deepEqual(await registerSearchAttributes(connection, namespace), { added: [], now: { state: 'there' } });
      }
    } finally {
      await native.close();
    }
  });

  it('are added by the command that is said, only those that are missing', async () => {
    const namespace = await createNamespace();
    const words = createCommand(namespace, NAMES.slice(1)).split(' ').slice(1);
    const { code, stderr } = await temporal(namespace, ...words.slice(0, words.indexOf('--namespace')));
    assert.equal(code, 0, stderr);
    assert.deepEqual(await registerSearchAttributes(client.connection, namespace), {
      added: NAMES.slice(0, 1),
      now: { state: 'there' },
    });
  });

  it('are not there where one has another type, which is left as it is', async () => {
    const namespace = await createNamespace();
    await temporal(namespace, ...'operator search-attribute create --name RepaveKey --type Text'.split(' '));
    const { added, now } = await registerSearchAttributes(client.connection, namespace);
    assert.deepEqual(added, ['RepavePipeline', 'RepaveBackfill']);
    assert.deepEqual(now, { state: 'incomplete', missing: [], otherType: ['RepaveKey (Text)'] });
  });

  it('are known by a query where the operator service refuses, as Temporal Cloud’s does', async () => {
    const refusing = withoutOperator(client.connection);
    const namespace = await createNamespace();
    assert.deepEqual(await searchAttributesState(refusing, namespace), {
      state: 'incomplete',
      missing: NAMES,
      otherType: [],
    });
    const { added, now } = await registerSearchAttributes(refusing, namespace);
    assert.deepEqual([added, now], [[], { state: 'unknown', reason: 'Request unauthorized.' }]);
    await registerSearchAttributes(client.connection, namespace);
    await becomes(refusing, namespace, { state: 'there' });

    const other = await createNamespace();
    await temporal(other, ...'operator search-attribute create --name RepaveKey --type Text'.split(' '));
    await registerSearchAttributes(client.connection, other);
    // A Text is no Keyword.
    await becomes(refusing, other, { state: 'incomplete', missing: ['RepaveKey'], otherType: [] });
  });

  it('are unknown where the namespace is, with what the server said', async () => {
    const state = await searchAttributesState(client.connection, 'no-such-namespace');
    assert.equal(state.state, 'unknown');
    assert.match(state.state === 'unknown' ? state.reason : '', /no-such-namespace is not found/);
  });
});

/** Waits until queries know what was added: they go by the server's copy of the namespace, which follows a little later. */
async function becomes(
  connection: SearchAttributesConnection,
  namespace: string,
  state: SearchAttributesState,
): Promise<void> {
  await until(`queries to know ${JSON.stringify(state)}`, async () =>
    isDeepStrictEqual(await searchAttributesState(connection, namespace), state),
  );
}

/** The same server, for one who may not use its operator service. */
function withoutOperator(connection: SearchAttributesConnection): SearchAttributesConnection {
  const refuse = (): Promise<never> =>
    Promise.reject(Object.assign(new Error('7 PERMISSION_DENIED'), { code: 7, details: 'Request unauthorized.' }));
  return {
    operatorService: Object.assign(Object.create(connection.operatorService), {
      listSearchAttributes: refuse,
      addSearchAttributes: refuse,
    }),
    workflowService: connection.workflowService,
    withDeadline: (deadline, ask) => connection.withDeadline(deadline, ask),
  };
}
