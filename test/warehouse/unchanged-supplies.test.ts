import assert from 'node:assert/strict';
import { bindParameters } from '../../src/pipeline/bind-parameters.js';
import type { Check, Pipeline } from '../../src/pipeline/pipeline.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, KEY, sqlPipeline, typescriptPipeline } from '../support/fill.js';

const QUERY = 'SELECT day, tenant, n, price FROM source WHERE day = :date';
const SETTINGS = { skipUnchanged: true, scope: { tenant: 'acme' } } as const;
const SUM: Check = (() => {
  const text = 'SELECT sum(price) FROM source WHERE day = :date';
  return { kind: 'sum', column: 'price', equals: bindParameters(text, sqlTokens(text), 'day', ['date']) };
})();

describe('skipUnchanged, scope and checks together, whatever the rows come from', () => {
  let test: TestDatabase;
  let remote: TestDatabase;
  let database: Database;
  let source: Database;

  before(async () => {
    [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    [database, source] = await Promise.all([
      openDatabase(test.url, { fills: 2 }),
      openDatabase(remote.url, { fills: 2 }),
    ]);
    await remote.sql('CREATE TABLE source (day date, tenant text, n int, price numeric)');
  });
  after(async () => {
    await Promise.all([database.close(), source.close()]);
    await Promise.all([test.drop(), remote.drop()]);
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(`CREATE TABLE source (day date, tenant text, n int, price numeric);
      CREATE TABLE target (id bigint GENERATED ALWAYS AS IDENTITY, day date NOT NULL, tenant text NOT NULL, n bigint, price numeric(8,2));
      INSERT INTO target (day, tenant, n) VALUES ('${KEY}', 'globex', 1), ('2024-03-01', 'acme', 1)`);
    for (const each of [test, remote]) {
      await each.sql(
        `TRUNCATE source; INSERT INTO source SELECT '${KEY}', 'acme', i, i + 0.25 FROM generate_series(1, 100) i`,
      );
    }
    value = 1;
  });

  let value: number;
  function* rows() {
    for (let i = 1; i <= 100; i++) yield { day: KEY, tenant: 'acme', n: i * value, price: '1.50' };
  }

  const SUPPLIES: Readonly<Record<string, Pipeline>> = {
    'the same database': sqlPipeline(QUERY, { ...SETTINGS, checks: [SUM, { kind: 'range', column: 'n', min: '1' }] }),
    'another PostgreSQL': sqlPipeline(QUERY, {
      ...SETTINGS,
      source: 'SOURCE_URL',
      checks: [SUM, { kind: 'unique', columns: ['n'] }],
    }),
    'TypeScript, spooled': typescriptPipeline(rows, {
      ...SETTINGS,
      checks: [{ kind: 'accepted', column: 'tenant', values: ['acme'] }],
    }),
    'TypeScript, straight': { ...typescriptPipeline(rows, SETTINGS), stage: false },
  };

  for (const [what, pipeline] of Object.entries(SUPPLIES)) {
    it(`from ${what}: written, unchanged, changed, and the other scope’s rows never touched`, async () => {
      const run = () => fill(database, { ...fillRequest(pipeline), source });
      const held = () => test.sql(`SELECT *, day::text, xmin::text, ctid::text FROM target ORDER BY ctid`);
      const others = () =>
        test.sql(`SELECT xmin::text, ctid::text FROM target WHERE tenant = 'globex' OR day <> '${KEY}' ORDER BY ctid`);
      const untouched = await others();
      const first = await run();
      assert.deepEqual([first.rows, first.deleted, first.unchanged], [100, 0, undefined]);
      const before = await held();
      const second = await run();
      assert.deepEqual([second.rows, second.deleted, second.unchanged], [100, 0, true]);
      assert.deepEqual(await held(), before);

      value = 2;
      for (const each of [test, remote]) await each.sql('UPDATE source SET n = n * 2');
      const third = await run();
      assert.deepEqual([third.rows, third.deleted, third.unchanged], [100, 100, undefined]);
      assert.equal((await run()).unchanged, true);
      assert.deepEqual(await others(), untouched);
    });
  }

  it('a sum of another PostgreSQL that is not the rows’ is refused, unchanged or not', async () => {
    const pipeline = SUPPLIES['another PostgreSQL'];
    assert.ok(pipeline?.kind === 'sql');
    const text = 'SELECT sum(price) + 1 FROM source WHERE day = :date';
    const wrong = { ...pipeline, checks: [{ ...SUM, equals: bindParameters(text, sqlTokens(text), 'day', ['date']) }] };
    await fill(database, { ...fillRequest(pipeline), source });
    await failsAs(fill(database, { ...fillRequest(wrong), source }), 'CheckFailed');
  });
});
