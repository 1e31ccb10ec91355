import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Scope } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { windowLock } from '../../src/warehouse/lock.js';
import { disjointScopes } from '../../src/warehouse/scope.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, NO_LOOKS_MS, sqlPipeline, typescriptPipeline } from '../support/fill.js';
import { untilLetGo } from '../support/lock-waits.js';
import { pinned } from '../support/pinned.js';
import type { Statement, StatementHooks } from '../support/statements.js';
import { withStatements } from '../support/statements.js';
import { SteeredFill, thawAll } from './steered-fill.js';

/** A pipeline of one tenant's rows; its query gives the rows of `of`. */
function tenant(name: string, of = name) {
  return sqlPipeline(`SELECT day, tenant, n FROM source WHERE day = :date AND tenant = '${of}'`, {
    name: `sales_${name}`,
    scope: { tenant: name },
  });
}

describe('a pipeline that owns a scope of its target', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 8, watchEveryMs: NO_LOOKS_MS });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  afterEach(thawAll);
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(`CREATE TABLE source (day date NOT NULL, tenant text, n int);
      CREATE TABLE target (day date NOT NULL, tenant text, n int);
      INSERT INTO source SELECT d::date, t, i FROM generate_series(date '${KEY}', '2024-03-01', '1 day') d,
        unnest(ARRAY['acme', 'globex', NULL]) t, generate_series(1, 3) i;
      INSERT INTO target SELECT day, tenant, 0 FROM source`);
  });

  const held = (where = 'true') =>
    test.sql(`SELECT day::text, tenant, n, xmin::text, ctid::text FROM target WHERE ${where} ORDER BY ctid`);
  const run = (pipeline: ReturnType<typeof tenant>, rewrite?: StatementHooks['rewrite']) =>
    withStatements({ rewrite }, () => fill(database, fillRequest(pipeline)));

  it('deletes, counts and checks its own rows alone, and the ledger has them by its name', async () => {
    const others = `day <> '${KEY}' OR tenant IS DISTINCT FROM 'acme'`;
    const before = await held(others);
    const acme = {
      ...tenant('acme'),
      checks: [
        { kind: 'rows' as const, min: 3, max: 3 },
        { kind: 'unique' as const, columns: ['n'] },
        { kind: 'not_null' as const, columns: ['tenant'] },
        { kind: 'range' as const, column: 'n', min: '1' },
      ],
    };
    for (const deleted of [3, 3]) {
      const outcome = await run(acme);
      assert.deepEqual([outcome.deleted, outcome.rows], [deleted, 3]);
      assert.deepEqual(await held(others), before);
    }
    assert.deepEqual(
      (await held(`day = '${KEY}' AND tenant = 'acme'`)).map(({ n }) => n),
      [1, 2, 3],
    );
    assert.deepEqual(
      (await fills(test, 'sales_acme')).map(({ inserted }) => inserted),
      [3, 3],
    );
    assert.deepEqual(await fills(test, 'sales_globex'), []);
  });

  it('a variant whose DELETE does not know the scope takes the other’s rows: the test above would see it', async () => {
    await run(tenant('acme'), withoutScope('delete'));
    assert.deepEqual(await held(`day = '${KEY}' AND tenant IS DISTINCT FROM 'acme'`), []);
  });

  it('writes rows of another scope, or of none: RowsOutsideWindow says so, by SQL and by TypeScript', async () => {
    const before = await held();
    const stray = await failsAs(run(tenant('acme', 'globex')), 'RowsOutsideWindow');
    assert.match(
      stray.message,
      /3 of 3 rows of sales_acme 2024-02-29 do not lie in its window \[2024-02-29, 2024-03-01\) by day and scope \(tenant = "acme"\) \(3 of another scope\).*Select only rows of the scope/,
    );
    const nulls = await failsAs(
      run({ ...tenant('acme'), query: sqlPipeline(`SELECT day, tenant, n FROM source WHERE day = :date`).query }),
      'RowsOutsideWindow',
    );
    assert.match(nulls.message, /6 of 9 rows .*\(6 of another scope\)/);
    const rows = typescriptPipeline(
      () => [
        { day: KEY, tenant: 'acme', n: 1 },
        { day: KEY, tenant: 'globex', n: 1 },
        { day: '2024-03-05', tenant: 'acme', n: 1 },
      ],
      {
        name: 'sales_acme',
        scope: { tenant: 'acme' },
      },
    );
    const copied = await failsAs(fill(database, fillRequest(rows)), 'RowsOutsideWindow');
    assert.match(copied.message, /2 of 3 rows .*from 2024-03-05 to 2024-03-05, 1 of another scope/);
    assert.deepEqual(await held(), before);
  });

  it('two scopes of one window fill at once: neither waits for the other’s transaction', async () => {
    const first = new SteeredFill(test, database, fillRequest(tenant('acme')), ['before guard']);
    assert.equal(await first.rest(), 'stopped');
    const second = await run(tenant('globex'));
    assert.deepEqual([second.deleted, second.rows, first.stoppedAt], [3, 3, 'before guard']);
    first.release();
    assert.equal((await first.end()).value?.rows, 3);
    assert.deepEqual((await held(`day = '${KEY}' AND tenant IS NOT NULL`)).map(({ tenant, n }) => [tenant, n]).sort(), [
      ...[1, 2, 3].map((n) => ['acme', n]),
      ...[1, 2, 3].map((n) => ['globex', n]),
    ]);
  });

  it('a variant whose lock does not know the scope waits: the test above would hang', async () => {
    const first = new SteeredFill(test, database, fillRequest(tenant('acme')), ['before guard'], withoutScope('lock'));
    assert.equal(await first.rest(), 'stopped');
    const second = new SteeredFill(
      test,
      database,
      fillRequest(tenant('globex')),
      [],
      (statement) => withoutScope('lock')(statement) ?? untilLetGo(statement),
    );
    assert.equal(await second.rest(), 'blocked');
    first.release();
    assert.ok((await second.end()).value);
  });

  it('two runs of one scope and window wait for each other', async () => {
    const first = new SteeredFill(test, database, fillRequest(tenant('acme')), ['before guard']);
    assert.equal(await first.rest(), 'stopped');
    const second = new SteeredFill(test, database, fillRequest(tenant('acme')), [], untilLetGo);
    assert.equal(await second.rest(), 'blocked');
    first.release();
    assert.equal((await second.end()).value?.deleted, 3);
    assert.equal((await held(`day = '${KEY}' AND tenant = 'acme'`)).length, 3);
  });

  it('three runs of each of two scopes, 10 rounds: each scope has one copy, of the last fill that the ledger has', async () => {
    for (let round = 1; round <= 10; round++) {
      const runs = ['acme', 'globex'].flatMap((name) => [1, 2, 3].map((size) => ({ name, size, run: randomUUID() })));
      await Promise.all(
        runs.map(({ name, size, run }) => {
          const pipeline = sqlPipeline(
            `SELECT :date AS day, '${name}' AS tenant, i AS n FROM generate_series(1, ${size}) i`,
            { name: `sales_${name}`, scope: { tenant: name } },
          );
          return withStatements({ rewrite: untilLetGo }, () => fill(database, fillRequest(pipeline, { run })));
        }),
      );
      for (const name of ['acme', 'globex']) {
        const last = (await fills(test, `sales_${name}`)).at(-1);
        const size = runs.find(({ run }) => run === last?.run)?.size ?? 0;
        assert.deepEqual(
          (await held(`day = '${KEY}' AND tenant = '${name}'`)).map(({ n }) => n).sort(),
          Array.from({ length: size }, (_, i) => i + 1),
        );
      }
    }
  });

  it('a holder past its deadline is found and ended under the scope’s lock', async () => {
    // That the server ends a transaction which stands idle would let the other go on as well.
    const patient = pinned('idle_in_transaction_session_timeout', () => '0');
    const frozen = new SteeredFill(test, database, fillRequest(tenant('acme')), ['before guard'], patient);
    assert.equal(await frozen.rest(), 'stopped');
    await test.sql(`UPDATE repave.claim SET deadline = now() - interval '1 second'`);
    assert.equal((await run(tenant('acme'), untilLetGo)).rows, 3);
    frozen.release();
    assert.ok((await frozen.end()).failure);
  });

  it('keys on the value, not on how it is written, for each type that a scope may have', async () => {
    await test.sql(`CREATE TYPE mood AS ENUM ('low', 'high'); CREATE DOMAIN small AS smallint;
      CREATE TABLE typed (day date NOT NULL, i int, s small, num numeric(8,2), v varchar(3), c char(4), b bool, u uuid, d date, m mood)`);
    const VALUES: Readonly<Record<string, readonly [written: string, other: string, stored: string]>> = {
      i: ['1', '01', '1'],
      s: ['7', ' 7 ', '7'],
      num: ['1.5', '1.50', '1.50'],
      v: ['ab', 'ab', 'ab'],
      c: ['ab', 'ab  ', 'ab  '],
      b: ['true', 't', 'true'],
      u: [
        'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11',
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
        'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
      ],
      d: ['2024-01-05', 'Jan 5 2024', '2024-01-05'],
      m: ['low', 'low', 'low'],
    };
    for (const [column, [written, other, stored]] of Object.entries(VALUES)) {
      const locks: unknown[] = [];
      for (const value of [written, other]) {
        const pipeline = sqlPipeline(`SELECT :date AS day, '${stored}' AS "${column}"`, {
          name: 'typed',
          target: { table: 'typed' },
          scope: { [column]: value },
        });
        await withStatements({ before: ({ kind, values }) => void (kind === 'lock' && locks.push(values)) }, () =>
          fill(database, fillRequest(pipeline)),
        );
      }
      assert.deepEqual(locks[0], locks[1], column);
      assert.equal((await test.sql(`SELECT FROM typed WHERE "${column}" IS NOT NULL`)).length, 1, column);
    }
  });

  for (const [what, scope, type, message] of [
    [
      'a column that the target lacks',
      { tenat: 'acme' },
      'SchemaMismatch',
      /names the column "tenat".*It has: day, tenant, n/,
    ],
    [
      'a value that the type cannot read',
      { n: 'many' },
      'InvalidPipeline',
      /gives the column "n" a value that its type integer cannot read/,
    ],
    [
      'a type that writes a value in several ways',
      { ratio: '1' },
      'InvalidPipeline',
      /by "ratio", which is of type double precision/,
    ],
    [
      'a collation by which two texts are one',
      { loose: 'a' },
      'InvalidPipeline',
      /by "loose", which is of type text: two texts may be one/,
    ],
  ] as const) {
    it(`by ${what}: ${type}, before the lock`, async () => {
      await test.sql(`CREATE COLLATION IF NOT EXISTS loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false);
        ALTER TABLE target ADD ratio float8, ADD loose text COLLATE loose`);
      const kinds: string[] = [];
      const pipeline = sqlPipeline('SELECT day, tenant, n FROM source', { scope });
      const failure = await failsAs(
        withStatements({ before: ({ kind }) => void kinds.push(kind) }, () => fill(database, fillRequest(pipeline))),
        type,
      );
      assert.match(failure.message, message);
      assert.ok(!kinds.includes('lock'));
    });
  }

  it('the unscoped lock of a window is what it was, and scopes differ from it and each other', () => {
    const { window } = fillRequest(tenant('acme'));
    const scopes: (Scope | undefined)[] = [
      undefined,
      {},
      { tenant: 'acme' },
      { tenant: 'globex' },
      { tenant: 'acme', region: 'eu' },
      { region: 'eu', tenant: 'acme' },
    ];
    const locks = scopes.map((scope) => windowLock({ root: 16_384 }, window, scope));
    assert.deepEqual(locks[0], { space: 16_384 ^ 0x52455041, window: window.number });
    assert.deepEqual(locks[1], locks[0]);
    assert.deepEqual(locks[4], locks[5], 'whatever the order of its columns');
    assert.equal(new Set(locks.map(({ space }) => space)).size, 4);
  });

  it('scopes are disjoint where a column of both differs, and nowhere else', () => {
    const CASES = [
      [{ tenant: 'a' }, { tenant: 'b' }, true],
      [{ tenant: 'a', region: 'eu' }, { tenant: 'a', region: 'us' }, true],
      [{ tenant: 'a' }, { tenant: 'a' }, false],
      [{ tenant: 'a' }, { region: 'a' }, false],
      [{ tenant: 'a' }, { tenant: 'a', region: 'us' }, false],
      [{ tenant: 'a' }, {}, false],
      [{}, undefined, false],
      [{ constructor: 'a' }, { tenant: 'a' }, false],
    ] as const;
    for (const [a, b, disjoint] of CASES) {
      assert.equal(disjointScopes(a, b), disjoint);
      assert.equal(disjointScopes(b, a), disjoint);
    }
  });
});

/** A broken variant: statements of a kind know nothing of the scope. */
function withoutScope(broken: string): NonNullable<StatementHooks['rewrite']> {
  return ({ kind, text, values }: Statement) => {
    if (kind !== broken) return undefined;
    if (kind === 'lock') return { text, values: [values[0], 0, values[2]] };
    return { text: text.replace(/ AND "tenant" = \$3/g, ''), values: values.slice(0, 2) };
  };
}
