import assert from 'node:assert/strict';
import type { Scope } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { registeredPipelines, registerPipeline } from '../../src/warehouse/ledger.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, NO_LOOKS_MS, sqlPipeline, until, within } from '../support/fill.js';
import { thawAll, SteeredFill } from './steered-fill.js';

function scoped(name: string, scope?: Scope, partition = { column: 'day', by: 'day' as 'day' | 'month', zone: 'UTC' }) {
  return sqlPipeline(`SELECT :start::date AS day, 'acme' AS tenant, 'eu' AS region, 1 AS n`, {
    name,
    scope,
    partition,
  });
}

describe('pipelines that share a target, in the registry', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  afterEach(thawAll);
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql('CREATE TABLE target (day date NOT NULL, tenant text, region text, n int)');
  });

  it('are taken where their scopes are disjoint, and fill beside each other', async () => {
    const all = [
      scoped('acme', { tenant: 'acme' }),
      scoped('globex_eu', { tenant: 'globex', region: 'eu' }),
      scoped('globex_us', { tenant: 'globex', region: 'us' }),
    ];
    for (const pipeline of all) await registerPipeline(database, pipeline);
    for (const pipeline of all) await registerPipeline(database, pipeline);
    assert.deepEqual(
      (await registeredPipelines(database)).map(({ name, scope }) => [name, scope]),
      all.map(({ name, scope }) => [name, scope]),
    );
    assert.equal((await fill(database, fillRequest(scoped('acme', { tenant: 'acme' })))).rows, 1);
  });

  it('have their scopes stored as the target’s types write them', async () => {
    await registerPipeline(database, scoped('one', { n: ' 01' }));
    assert.deepEqual((await registeredPipelines(database))[0]?.scope, { n: '1' });
    const failure = await failsAs(registerPipeline(database, scoped('two', { n: '1' })), 'InvalidPipeline');
    assert.match(failure.message, /target of one: its scope \(n = "1"\) and that of two \(n = "1"\) are not disjoint/);
    await registerPipeline(database, scoped('two', { n: '2' }));
  });

  const REFUSED: Readonly<
    Record<string, readonly [first: ReturnType<typeof scoped>, second: ReturnType<typeof scoped>, message: RegExp]>
  > = {
    'the same scope': [
      scoped('a', { tenant: 'acme' }),
      scoped('b', { tenant: 'acme' }),
      /scope \(tenant = "acme"\) and that of b/,
    ],
    'scopes by different columns': [
      scoped('a', { tenant: 'acme' }),
      scoped('b', { region: 'eu' }),
      /\(tenant = "acme"\) and that of b \(region = "eu"\) are not disjoint/,
    ],
    'a scope within the other': [
      scoped('a', { tenant: 'acme' }),
      scoped('b', { tenant: 'acme', region: 'eu' }),
      /are not disjoint/,
    ],
    'a scope beside none': [
      scoped('a'),
      scoped('b', { tenant: 'acme' }),
      /scope \(no scope\) and that of b \(tenant = "acme"\)/,
    ],
    'none beside a scope': [scoped('a', { tenant: 'acme' }), scoped('b'), /that of b \(no scope\)/],
    'disjoint scopes on other grids': [
      scoped('a', { tenant: 'acme' }),
      scoped('b', { tenant: 'globex' }, { column: 'day', by: 'month', zone: 'UTC' }),
      /by day in UTC of the column "day", and pipelines of one target need the same/,
    ],
    'disjoint scopes in other zones': [
      scoped('a', { tenant: 'acme' }),
      scoped('b', { tenant: 'globex' }, { column: 'day', by: 'day', zone: 'Asia/Tokyo' }),
      /need the same/,
    ],
  };
  for (const [what, [first, second, message]] of Object.entries(REFUSED)) {
    it(`with ${what} are refused, by the registry and by a fill that it missed`, async () => {
      await registerPipeline(database, first);
      const failure = await failsAs(registerPipeline(database, second), 'InvalidPipeline');
      assert.match(failure.message, message);
      assert.match(
        failure.message,
        /^public\.target is already the target of a: .*DELETE FROM repave\.pipeline WHERE name = 'a'/,
      );
      const key = second.partition.by === 'month' ? '2024-02' : '2024-02-29';
      const filled = await failsAs(fill(database, fillRequest(second, { key })), 'InvalidPipeline');
      assert.match(
        filled.message,
        /public\.target is also the target of a \(by day, UTC, column day(, scope \{.*\})?\)/,
      );
      assert.deepEqual(await test.sql('SELECT FROM target'), []);
    });
  }

  it('a changed scope waits until no fill of the target runs, and fills by the old one are refused', async () => {
    const old = scoped('acme', { tenant: 'acme' });
    const changed = scoped('acme', { region: 'eu' });
    await registerPipeline(database, old);
    const running = new SteeredFill(test, database, fillRequest(old), ['before guard']);
    assert.equal(await running.rest(), 'stopped');
    let registered = false;
    const registering = registerPipeline(database, changed).then(() => (registered = true));
    await until('the registration waits for the grid', async () => {
      const waits = await test.sql(`SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`);
      return waits.length > 0;
    });
    assert.equal(registered, false);
    running.release();
    assert.ok((await running.end()).value);
    await within('the registration', registering);
    const failure = await failsAs(fill(database, fillRequest(old)), 'InvalidPipeline');
    assert.match(failure.message, /target of acme \(by day, UTC, column day, scope \{"region": "eu"\}\)/);
    assert.equal((await fill(database, fillRequest(changed))).deleted, 1);
  });

  it('is written once by workers that start at once with scopes that overlap', async () => {
    const contenders = await Promise.allSettled(
      ['a', 'b', 'c', 'd'].map((name) => registerPipeline(database, scoped(name, { tenant: name < 'c' ? 'x' : 'y' }))),
    );
    assert.equal(contenders.filter(({ status }) => status === 'fulfilled').length, 2);
    assert.deepEqual(
      new Set((await registeredPipelines(database)).map(({ scope }) => scope.tenant)),
      new Set(['x', 'y']),
    );
  });
});
