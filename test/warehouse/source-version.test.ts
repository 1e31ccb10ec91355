import assert from 'node:assert/strict';
import { Failure } from '../../src/failure.js';
import { bindParameters } from '../../src/pipeline/bind-parameters.js';
import type { ChangedFunction, SqlPipeline, TypeScriptPipeline } from '../../src/pipeline/pipeline.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { failStraySource } from '../../src/warehouse/source-being-read.js';
import { versionText } from '../../src/warehouse/version-text.js';
import { changing, moved, versions } from '../support/changed.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, KEY, type RequestOptions, typescriptPipeline, within } from '../support/fill.js';
import { SOURCE } from '../support/source-database.js';

const QUERY = 'SELECT :date AS day';
const HASHED = /^\\sha256:[0-9a-f]{64}$/;

describe('the version of a partition’s source', () => {
  let test: TestDatabase;
  let elsewhere: TestDatabase;
  let database: Database;
  let source: Database;
  let names = 0;

  before(async () => {
    [test, elsewhere] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    await test.sql(`
      CREATE TABLE target (day date NOT NULL);
      CREATE TABLE written (note text);
      CREATE FUNCTION writes() RETURNS int LANGUAGE sql VOLATILE AS 'INSERT INTO written VALUES (''x'') RETURNING 1';`);
    await elsewhere.sql(`CREATE TABLE loads (day date, version int); INSERT INTO loads VALUES ('${KEY}', 7)`);
    database = await openDatabase(test.url, { fills: 4 });
    source = await openDatabase(elsewhere.ownerUrl, { fills: 4 });
  });
  after(async () => {
    await Promise.all([database.close(), source.close()]);
    await Promise.all([test.drop(), elsewhere.drop()]);
  });

  const named = () => ({ name: `p${++names}`, scope: undefined });
  /** Fills a partition of a pipeline of its own, and gives the version that the ledger then has. */
  const kept = async (
    pipeline: SqlPipeline | TypeScriptPipeline,
    options: RequestOptions = {},
  ): Promise<string | null | undefined> => {
    await test.sql('DELETE FROM target; DELETE FROM repave.pipeline');
    await fill(database, fillRequest(pipeline, options));
    const { fills, now } = await versions(test, pipeline, KEY);
    assert.equal(now, fills.at(-1));
    assert.deepEqual(await moved(database, pipeline), []);
    if (pipeline.kind === 'typescript' || !pipeline.changed) return now;
    const by = ` by ${pipeline.changed.hash}`;
    assert.ok(now?.endsWith(by), now ?? 'none');
    return now?.slice(0, -by.length);
  };
  const asked = async (changed: string, settings: Parameters<typeof changing>[2] = {}): Promise<SqlPipeline> =>
    changing(changed, QUERY, { ...named(), ...settings });

  describe('by a query', () => {
    it('is what that gives by its parameters, in the pipeline’s zone', async () => {
      const zone = 'Europe/Paris';
      const text = `SELECT concat_ws('|', :key, :date, :end_date, :start, :end, current_setting('TimeZone')) -- at its end`;
      const pipeline = await asked(text, { partition: { column: 'day', by: 'day', zone } });
      assert.equal(
        await kept(pipeline),
        `${KEY}|${KEY}|2024-03-01|2024-02-29 00:00:00+01|2024-03-01 00:00:00+01|${zone}`,
      );
    });

    for (const [what, changed, version] of [
      [
        'a timestamp, to the microsecond',
        `SELECT timestamptz '2024-03-01 12:00:00.123456+02'`,
        '2024-03-01 10:00:00.123456+00',
      ],
      ['a number', 'SELECT 0.1::float8 + 0.2', '0.30000000000000004'],
      ['several values in a row', 'SELECT ROW(count(*), max(a)) FROM (VALUES (1), (2)) v(a)', '(2,2)'],
      ['NULL', 'SELECT max(note) FROM written', '\\N'],
      ['no row, as NULL', 'SELECT note FROM written', '\\N'],
      ['a text that looks like NULL', `SELECT '\\N'`, '\\\\N'],
      ['an empty text', `SELECT ''`, ''],
      ['a hash', `SELECT sha256('x')`, '\\\\x2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881'],
      ['a text with an ORDER BY', 'SELECT a FROM (VALUES (1), (2)) v(a) ORDER BY a DESC LIMIT 1', '2'],
      ['200 characters', `SELECT repeat('x', 200)`, 'x'.repeat(200)],
    ] as const) {
      it(`may be ${what}`, async () => {
        assert.equal(await kept(await asked(changed)), version);
      });
    }

    it('is hashed where it is long or no plain text, each to another', async () => {
      const texts = [`repeat('x', 201)`, `repeat('x', 202)`, `'é'`, `'è'`, `E'a\\nb'`];
      const found = new Set<string | null | undefined>();
      for (const text of texts) found.add(await kept(await asked(`SELECT ${text}`)));
      assert.equal(found.size, texts.length);
      for (const version of found) assert.match(version ?? '', HASHED);
    });

    it('is the same whatever the session’s settings say', async () => {
      const changed = `SELECT concat_ws('|', ROW(timestamptz '2024-03-01 10:00Z', date '2024-03-01', interval '90 s', 1/3::float8, bytea 'x')::text)`;
      const pipeline = await asked(changed);
      const plain = await kept(pipeline);
      const settings = `datestyle = 'German, DMY'; ALTER DATABASE ${test.name} SET timezone = 'Asia/Tokyo';
        ALTER DATABASE ${test.name} SET intervalstyle = iso_8601; ALTER DATABASE ${test.name} SET extra_float_digits = -3;
        ALTER DATABASE ${test.name} SET bytea_output = escape`;
      await test.sql(`ALTER DATABASE ${test.name} SET ${settings}`);
      const other = await openDatabase(test.url, { fills: 1 });
      try {
        assert.deepEqual(await moved(other, pipeline), []);
        await fill(other, fillRequest(pipeline));
        assert.equal((await versions(test, pipeline, KEY)).now, `${plain} by ${pipeline.changed?.hash}`);
      } finally {
        await other.close();
        await test.sql(`ALTER DATABASE ${test.name} RESET ALL`);
      }
    });

    for (const [what, changed, type, says] of [
      ['two rows', 'SELECT 1 UNION ALL SELECT 2', 'InvalidPipeline', /`changed` of p\d+ gives more than one row/],
      ['a million rows', 'SELECT 1 FROM generate_series(1, 1000000)', 'InvalidPipeline', /more than one row/],
      ['two columns', 'SELECT 1, 2', 'InvalidPipeline', /gives 2 columns: expected one value/],
      ['no column', 'SELECT', 'InvalidPipeline', /gives 0 columns/],
      [
        'nothing, of a table that is not there',
        'SELECT max(x) FROM gone',
        'SchemaMismatch',
        /^`changed` of p\d+: .*42P01/,
      ],
    ] as const) {
      it(`fails the fill where that gives ${what}`, async () => {
        const pipeline = await asked(changed);
        const { message } = await failsAs(fill(database, fillRequest(pipeline)), type);
        assert.match(message, says);
        assert.deepEqual((await versions(test, pipeline, KEY)).fills, []);
        assert.deepEqual(await test.sql('SELECT FROM written'), []);
      });
    }

    it('is another by another query that says the same, but not by another layout', async () => {
      const pipeline = await asked('SELECT count(*) FROM written');
      await kept(pipeline);
      const asksBy = async (changed: string) =>
        moved(database, { ...pipeline, changed: (await asked(changed)).changed });
      assert.deepEqual(await asksBy('select COUNT(*) -- all\nFROM written;'), []);
      assert.deepEqual(await asksBy('SELECT count(note) FROM written'), [KEY]);
    });

    it('is asked by a plan where nothing can be written', async () => {
      const pipeline = await asked('SELECT writes()');
      await test.sql('DELETE FROM repave.pipeline');
      await fill(database, fillRequest(pipeline));
      const { message } = await failsAs(moved(database, pipeline), 'InvalidPipeline');
      assert.match(message, /`changed` of p\d+ writes: its transaction is read-only/);
      await test.sql('DELETE FROM written');
    });

    for (const skipUnchanged of [false, true]) {
      it(`counts its parameters on behind those of the query and its checks${skipUnchanged ? ', through a temporary table too' : ''}`, async () => {
        const text = 'SELECT sum(version) FROM loads WHERE day < :end_date AND :key IS NOT NULL';
        const equals = bindParameters(text, sqlTokens(text), 'day', ['date']);
        const pipeline = await asked(`SELECT :start || ' ' || :key`, {
          skipUnchanged,
          checks: [{ kind: 'sum', column: 'n', equals }],
        });
        await test.sql(`CREATE TABLE loads (day date, version int); ALTER TABLE target ADD n int`);
        try {
          assert.equal(await kept(pipeline), `${KEY} 00:00:00+00 ${KEY}`);
        } finally {
          await test.sql('DROP TABLE loads; ALTER TABLE target DROP n');
        }
      });
    }

    it('is asked where the pipeline’s query runs, and what that server says names it', async () => {
      const pipeline = await changing(
        'SELECT version FROM loads WHERE day = :date',
        'SELECT day FROM loads WHERE day = :date',
        {
          ...named(),
          source: SOURCE,
        },
      );
      await test.sql('DELETE FROM repave.pipeline');
      await fill(database, { ...fillRequest(pipeline), source });
      const version = `7 by ${pipeline.changed?.hash}`;
      assert.deepEqual(await versions(test, pipeline, KEY), { fills: [version], now: version });
      assert.deepEqual(await moved(database, pipeline, { source }), []);
      await elsewhere.sql('UPDATE loads SET version = 8');
      assert.deepEqual(await moved(database, pipeline, { source }), [KEY]);
      const wrong = await changing('SELECT gone FROM loads', 'SELECT day FROM loads', { ...named(), source: SOURCE });
      const { message } = await failsAs(fill(database, { ...fillRequest(wrong), source }), 'SchemaMismatch');
      assert.match(message, /^On the source of p\d+ .*: `changed` of p\d+: PostgreSQL answered 42703/);
      const several = await changing('SELECT 1, 2', 'SELECT day FROM loads', { ...named(), source: SOURCE });
      const refused = await failsAs(fill(database, { ...fillRequest(several), source }), 'InvalidPipeline');
      assert.match(refused.message, /On the source of .*gives 2 columns/);
    });
  });

  describe('by a function', () => {
    const coded = (
      changed: ChangedFunction,
      settings: Parameters<typeof typescriptPipeline>[1] = {},
    ): TypeScriptPipeline => ({
      ...typescriptPipeline(({ key }) => [{ day: key }], { ...named(), ...settings }),
      changed,
    });

    for (const [what, changed, version] of [
      ['a text', ({ key, window }) => `${key} ${window.start}`, `${KEY} 2024-02-29T00:00:00Z`],
      ['a number', () => 1.5, '1.5'],
      ['a bigint, later', () => Promise.resolve(12345678901234567890n), '12345678901234567890'],
    ] as const satisfies readonly (readonly [string, ChangedFunction, string])[]) {
      it(`may be ${what}`, async () => {
        assert.equal(await kept(coded(changed)), version);
      });
    }

    it('is kept of texts that no database can store', async () => {
      const found = [
        await kept(coded(() => 'a\0b')),
        await kept(coded(() => 'a\ud800')),
        await kept(coded(() => 'a\ud801')),
      ];
      for (const version of found) assert.match(version ?? '', HASHED);
      assert.equal(new Set(found).size, 3);
    });

    for (const [what, answer] of [
      ['undefined', undefined],
      ['null', null],
      ['NaN', NaN],
      ['object', new Date()],
      ['boolean', true],
    ] as const) {
      it(`is wrong where it gives ${what}`, async () => {
        const changed = (() => answer) as unknown as ChangedFunction;
        const { message } = await failsAs(fill(database, fillRequest(coded(changed))), 'InvalidPipeline');
        assert.match(
          message,
          new RegExp(`\`changed\` of p\\d+ gives .*${what}: expected a text, a number or a bigint`),
        );
      });
    }

    it('counts as a fault of the source where it throws, or what it started does', async () => {
      const thrown = coded(() => {
        throw new TypeError('secret');
      });
      const failure = await failsAs(fill(database, fillRequest(thrown)), 'SourceFailed');
      assert.match(failure.message, /^changed\(\) of p\d+ threw TypeError for 2024-02-29/);
      assert.doesNotMatch(failure.message, /secret/);
      const stray = coded(async () => {
        await Promise.resolve();
        assert.ok(failStraySource(new RangeError('x')));
        return new Promise<string>(() => undefined);
      });
      const other = await failsAs(within('the stray error', fill(database, fillRequest(stray))), 'SourceFailed');
      assert.match(other.message, /RangeError/);
    });

    it('is ended by a cancel and by the pipeline’s time, in a fill and in a plan', async () => {
      let calls = 0;
      const pipeline = coded(() => (++calls === 1 ? '1' : new Promise<string>(() => undefined)), { timeoutMs: 50 });
      assert.equal(
        await test
          .sql('DELETE FROM repave.pipeline')
          .then(() => fill(database, fillRequest(pipeline)))
          .then(({ rows }) => rows),
        1,
      );
      const cancel = new AbortController();
      const hanging = fill(database, fillRequest(pipeline, { signal: cancel.signal }));
      const reason = new Error('cancelled');
      cancel.abort(reason);
      await assert.rejects(within('the cancel', hanging), reason);
      await assert.rejects(
        within('the plan’s cancel', moved(database, pipeline, { signal: AbortSignal.abort(reason) })),
        reason,
      );
      await assert.rejects(
        within('the plan’s limit', moved(database, pipeline)),
        (error) => error instanceof Failure && error.type === 'TimedOut',
      );
    });

    for (const stage of [true, false]) {
      it(`is asked before the first row, ${stage ? 'spooled' : 'straight'}`, async () => {
        const order: string[] = [];
        const pipeline: TypeScriptPipeline = {
          ...typescriptPipeline(
            function* ({ key }) {
              order.push('rows');
              yield { day: key };
            },
            { ...named(), stage },
          ),
          changed: () => order.push('changed'),
        };
        await test.sql('DELETE FROM target; DELETE FROM repave.pipeline');
        const steps: string[] = [];
        await fill(database, fillRequest(pipeline, { onStep: (step) => steps.push(step) }));
        assert.deepEqual(order, ['changed', 'rows']);
        assert.deepEqual(steps.slice(0, 2), ['claim', 'changed']);
      });
    }

    it('is asked anew where the rows are read anew, since another run has overtaken them', async () => {
      let [asks, reads] = [0, 0];
      const pipeline: TypeScriptPipeline = {
        ...typescriptPipeline(async function* ({ key }) {
          if (++reads === 1) await fill(database, fillRequest(pipeline));
          yield { day: key };
        }, named()),
        changed: () => ++asks,
      };
      await test.sql('DELETE FROM target; DELETE FROM repave.pipeline');
      await fill(database, fillRequest(pipeline));
      // The first asked 1, the one that overtook it 2.
      assert.deepEqual(await versions(test, pipeline, KEY), { fills: ['2', '3'], now: '3' });
    });
  });

  it('is one text for one version', () => {
    const given = ['', '\\', '\\N', '\\\\N', 'N', 'null', '\\sha256:', 'x'.repeat(201), 'é', null];
    assert.equal(new Set(given.map(versionText)).size, given.length);
  });

  it('is not asked of a pipeline without', async () => {
    const pipeline = typescriptPipeline(({ key }) => [{ day: key }], named());
    await test.sql('DELETE FROM target; DELETE FROM repave.pipeline');
    await fill(database, fillRequest(pipeline));
    assert.deepEqual(await versions(test, pipeline, KEY), { fills: [null], now: null });
  });
});
