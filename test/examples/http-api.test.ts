import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadPipeline } from '../../src/pipeline/load.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import { makeBed } from '../support/bed.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, openFills, until, withWorker } from '../support/fill.js';
import { type Order, type ShopServer, startShop, type Trouble } from './shop-server.js';

const EXAMPLE = fileURLToPath(new URL('../../examples/http-api', import.meta.url));
const TABLES = readFileSync(join(EXAMPLE, 'tables.sql'), 'utf8');
const KEYS = ['2024-02-28', '2024-02-29', '2024-03-01'] as const;

/** Orders of three days, sixteen a day, an hour and a half apart, beginning at a day's first instant. */
const ORDERS: readonly Order[] = Array.from({ length: 48 }, (_, n) => ({
  id: 9_000_000_000 + n,
  placed_at: new Date(Date.UTC(2024, 1, 28) + n * 5_400_000).toISOString(),
  customer: n % 5 === 0 ? null : `Ünal "${n}"\t\\ 😀`,
  amount: `${n}.${String(n % 100).padStart(2, '0')}`,
  lines: [{ sku: `A${n}`, quantity: n }],
}));

describe('the example of an HTTP API', function () {
  this.timeout(600_000);
  let test: TestDatabase;
  let pipeline: Pipeline;
  let shop: ShopServer | undefined;
  const variable = process.env.SHOP_API_URL;

  before(async () => {
    test = await createTestDatabase();
    await test.sql(TABLES);
    pipeline = await loadPipeline(join(EXAMPLE, 'pipelines'), 'orders');
  });
  beforeEach(() => test.sql('TRUNCATE orders'));
  afterEach(async () => {
    if (variable === undefined) delete process.env.SHOP_API_URL;
    else process.env.SHOP_API_URL = variable;
    await shop?.close();
    shop = undefined;
  });
  after(() => test.drop());

  const open = async (trouble: (request: number) => Trouble | undefined): Promise<ShopServer> => {
    shop = await startShop(ORDERS, trouble);
    process.env.SHOP_API_URL = shop.url;
    return shop;
  };
  const filled = (key: string, signal?: AbortSignal) =>
    withWorker(test, async (database) => fill(database, fillRequest(pipeline, { key, signal })));
  const standing = (database = test) =>
    database.sql<{ order: Order }>(
      `SELECT json_build_object('id', id, 'placed_at', to_char(placed_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                'customer', customer, 'amount', amount::text, 'lines', lines) AS order FROM orders ORDER BY id`,
    );
  const expected = ORDERS.map((order) => ({ order }));

  it('fills each day exactly, from a server that refuses, breaks off and hangs up now and then', async () => {
    const troubles: readonly Trouble[] = ['breaks off', 429, 503, 'hangs up', 'dated 503', 'breaks off'];
    // Every other request, so that each is met once and answered the next time.
    const server = await open((request) => (request % 2 === 1 ? troubles[(request - 1) / 2] : undefined));
    const counts: number[] = [];
    for (const key of KEYS) counts.push((await filled(key)).rows);
    assert.deepEqual(counts, [16, 16, 16]);
    assert.deepEqual(await standing(), expected);
    assert.deepEqual(Object.fromEntries(server.troubles), {
      'breaks off': 2,
      429: 1,
      503: 1,
      'hangs up': 1,
      'dated 503': 1,
    });
    assert.equal(server.tooSoon, 0, 'it waited as long as the server had said');
    for (const key of KEYS) assert.equal((await filled(key)).deleted, 16);
    assert.deepEqual(await standing(), expected);
  });

  it('gives up on a server that stays in trouble, and leaves the old rows', async () => {
    let broken: Trouble | undefined;
    const server = await open((request) => (request > 3 ? broken : undefined));
    await filled(KEYS[0]);
    const before = await standing();
    broken = 'breaks off';
    const failure = await failsAs(filled(KEYS[0]), 'SourceFailed');
    assert.match(failure.message, /\/api\/orders broke off in the middle of its answer \(try 6\)/);
    assert.equal(server.troubles.get('breaks off'), 6);
    broken = 404;
    assert.match((await failsAs(filled(KEYS[0]), 'SourceFailed')).message, /\/api\/orders answered 404/);
    assert.equal(server.troubles.get(404), 1, 'that is asked once');
    assert.deepEqual(await standing(), before);
    delete process.env.SHOP_API_URL;
    assert.match((await failsAs(filled(KEYS[0]), 'SourceFailed')).message, /SHOP_API_URL is not set/);
  });

  it('waits for no pause when it is cancelled', async () => {
    const server = await open(() => 503);
    const cancel = new AbortController();
    const reason = new Error('cancelled');
    const filling = filled(KEYS[0], cancel.signal);
    await until('the server to have refused', async () => (server.troubles.get(503) ?? 0) > 1);
    cancel.abort(reason);
    await assert.rejects(filling, (error) => error === reason);
    assert.equal(await openFills(test), 0);
  });

  it('runs in a worker as it stands there, without a build', async () => {
    const name = `orders_${randomBytes(6).toString('hex')}`;
    const bed = await makeBed({
      files: { [`${name}.ts`]: readFileSync(join(EXAMPLE, 'pipelines', 'orders.ts'), 'utf8') },
    });
    try {
      cpSync(join(EXAMPLE, 'lib'), join(bed.project, 'lib'), { recursive: true });
      await bed.database.sql(TABLES);
      const server = await open((request) => (request % 4 === 0 ? 'breaks off' : undefined));
      await bed.worker({ env: { SHOP_API_URL: server.url } });
      const run = await bed.client.backfill({ pipeline: name, from: KEYS[0], to: KEYS[2] });
      const { filled: done, rows } = await run.result();
      assert.deepEqual([done, rows], [3, 48]);
      assert.deepEqual(await standing(bed.database), expected);
      assert.ok((server.troubles.get('breaks off') ?? 0) > 0);
    } finally {
      await bed.close();
    }
  });
});
