import assert from 'node:assert/strict';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type Bed, DAILY, makeBed } from '../support/bed.js';
import { Proxy } from '../support/proxy.js';
import { until } from '../workflows/scripted.js';

describe('two databases of one worker with one slot', () => {
  let bed: Bed;
  let other: TestDatabase;
  let proxy: Proxy;
  let elsewhere: string;

  beforeEach(async () => {
    other = await createTestDatabase();
    await other.sql('CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL)');
    proxy = await Proxy.before(other.url);
    const name = `elsewhere_${other.name}`;
    elsewhere = name;
    const query = 'SELECT :date AS day, 1 AS n\n';
    bed = await makeBed({
      files: {
        [`${name}.sql`]: DAILY.replace(/SELECT[^]*/, query).replace('-- start', '-- database: OTHER_URL\n-- start'),
      },
    });
  });
  afterEach(async () => {
    await bed.close();
    await proxy.close();
    await other.drop();
  });

  /** The type of the last failure of a workflow's pending activity; undefined where there is none, or no workflow yet. */
  async function failureOf(workflowId: string): Promise<string | undefined> {
    const description = await bed.client.temporal.workflow
      .getHandle(workflowId)
      .describe()
      .catch(() => undefined);
    return description?.raw.pendingActivities?.[0]?.lastFailure?.applicationFailureInfo?.type ?? undefined;
  }

  it('goes on with one while the other is down, and with that once it is back', async () => {
    await bed.worker({ env: { OTHER_URL: proxy.url(other.url), REPAVE_FILLS: '1' } });
    proxy.restart({ onMessage: () => 'cut' });
    const waiting = await bed.client.backfill({ pipeline: elsewhere, from: '2024-01-01', to: '2024-01-05' });
    await until(async () => (await failureOf(waiting.id)) === 'DatabaseUnavailable');
    const going = await bed.client.backfill({ pipeline: bed.pipeline, from: '2024-01-01', to: '2024-01-20' });
    assert.equal((await going.result()).filled, 20);
    proxy.restart({});
    assert.equal((await waiting.result()).filled, 5);
    assert.deepEqual(await other.sql('SELECT * FROM repave.failure'), []);
  }).timeout(300_000);

  it('gives the slot back at once when a database falls silent under planned fills', async () => {
    await bed.worker({ env: { OTHER_URL: proxy.url(other.url), REPAVE_FILLS: '1' } });
    // All that is planned goes through; from the first claim on nothing comes back, and no connection is refused.
    let silent = false;
    proxy.restart({
      onMessage: ({ sql }) => {
        silent ||= sql.includes('repave.claim');
        return silent ? 'freeze' : 'pass';
      },
    });
    const to = '2024-01-20';
    const waiting = await bed.client.backfill({ pipeline: elsewhere, from: '2024-01-01', to, concurrency: 20 });
    await until(async () => (await failureOf(`${elsewhere}/2024-01-01`)) === 'DatabaseUnavailable');
    const going = await bed.client.backfill({ pipeline: bed.pipeline, from: '2024-01-01', to });
    assert.equal((await going.result()).filled, 20);
    proxy.restart({});
    const result = await waiting.result();
    assert.deepEqual([result.filled, result.failed], [20, 0]);
  }).timeout(300_000);

  it('starts though one is down, and serves its pipelines when it comes up', async () => {
    proxy.restart({ onMessage: () => 'cut' });
    await bed.worker({ env: { OTHER_URL: proxy.url(other.url), REPAVE_CONNECT_WAIT: '1' } });
    const going = await bed.client.backfill({ pipeline: bed.pipeline, from: '2024-01-01', to: '2024-01-05' });
    assert.equal((await going.result()).filled, 5);
    assert.deepEqual(await other.sql('SELECT * FROM repave.pipeline'), []);
    proxy.restart({});
    const late = await bed.client.backfill({ pipeline: elsewhere, from: '2024-01-01', to: '2024-01-05' });
    assert.equal((await late.result()).filled, 5);
    const registered = await other.sql('SELECT name FROM repave.pipeline');
    assert.deepEqual(registered, [{ name: elsewhere }]);
  }).timeout(300_000);
});
