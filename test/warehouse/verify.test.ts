import assert from 'node:assert/strict';
import type { Scope, SqlPipeline } from '../../src/pipeline/pipeline.js';
import { stateOf } from '../../src/warehouse/partition-state.js';
import { adoptWindows } from '../../src/warehouse/adopt.js';
import { windowOf } from '../../src/calendar/window.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { registerPipeline } from '../../src/warehouse/ledger.js';
import { partitionHistory, partitionRows } from '../../src/warehouse/partitions.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { type Finding, passedOver, standingFinding } from '../../src/warehouse/findings.js';
import { ALL_KEYS, verifyPipeline } from '../../src/warehouse/verify-pipeline.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, NO_LOOKS_MS, settled, sqlPipeline, until } from '../support/fill.js';
import { type Statement, unhooked, withStatements } from '../support/statements.js';
import { asSuperuser } from '../support/superuser.js';
import { withClient } from '../support/template.js';

const QUERY = 'SELECT day, n FROM source WHERE day >= :date AND day < :end_date';
const KEYS = ['2024-02-26', '2024-02-27', '2024-02-28', '2024-02-29'];
const EMPTY = '2024-02-25';

interface Options {
  readonly pipeline?: SqlPipeline;
  readonly dryRun?: boolean;
  readonly signal?: AbortSignal;
}

describe('verify', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    // As a worker's role: its grants are enough.
    database = await openDatabase(test.url, { fills: 4, watchEveryMs: NO_LOOKS_MS });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    // The day's number of rows: 1 on the 26th, 2 on the 27th, …; none on the 25th.
    await test.sql(`CREATE TABLE source (day date NOT NULL, n int); CREATE TABLE target (LIKE source);
      CREATE INDEX ON target (day);
      INSERT INTO source SELECT day, k FROM generate_series(date '2024-02-26', '2024-02-29', '1 day') day,
             generate_series(1, extract(day FROM day)::int - 25) k`);
  });

  const plain = sqlPipeline(QUERY);
  const summed = sqlPipeline(QUERY, { checksum: true });

  async function filled(pipeline = plain): Promise<void> {
    await registerPipeline(database, pipeline);
    for (const key of [EMPTY, ...KEYS]) await fill(database, fillRequest(pipeline, { key }));
  }

  async function verify({ pipeline = plain, dryRun = false, signal = new AbortController().signal }: Options = {}) {
    const total = { compared: 0, checksums: 0, unreadable: 0, findings: [] as Finding[] };
    for await (const stretch of verifyPipeline(database, { pipeline, spans: [ALL_KEYS], dryRun, signal })) {
      total.compared += stretch.compared;
      total.checksums += stretch.checksums;
      total.unreadable += stretch.unreadable;
      total.findings.push(...stretch.findings);
    }
    return total;
  }

  async function states(pipeline = plain): Promise<Record<string, string>> {
    const rows = await partitionRows(database, pipeline.name);
    return Object.fromEntries([...rows].map(([key, row]) => [key, stateOf(row, pipeline.fingerprint)]));
  }

  const found = (...findings: (readonly [key: string, ledger: number, table: number, state: string])[]) =>
    findings.map(([key, ledgerRows, tableRows, state]) => ({ key, ledgerRows, tableRows, state }));
  const ledger = () => test.sql('SELECT p.*, ctid::text, xmin::text FROM repave.partition p ORDER BY key');

  it('finds nothing where the table is as the ledger has it, and writes nothing', async () => {
    await filled();
    const before = await ledger();
    assert.deepEqual(await verify(), { compared: 5, checksums: 0, unreadable: 0, findings: [] });
    assert.deepEqual(await ledger(), before);
  });

  it('has deleted days counted as missing, and those with a row more, fewer or moved as outdated, and a refill sets them right', async () => {
    await filled();
    await test.sql(`DELETE FROM target WHERE day = '2024-02-26';
      INSERT INTO target VALUES ('2024-02-25', 1);
      UPDATE target SET day = '2024-02-27' WHERE day = '2024-02-28' AND n = 1;
      DELETE FROM target WHERE day = '2024-02-29' AND n > 1`);
    const all = found(
      ['2024-02-25', 0, 1, 'outdated'],
      ['2024-02-26', 1, 0, 'missing'],
      ['2024-02-27', 2, 3, 'outdated'],
      ['2024-02-28', 3, 2, 'outdated'],
      ['2024-02-29', 4, 1, 'outdated'],
    );
    const before = await ledger();
    assert.deepEqual((await verify({ dryRun: true })).findings, all);
    assert.deepEqual(await ledger(), before, 'a dry run records nothing');
    assert.deepEqual((await verify()).findings, all);
    assert.deepEqual(await states(), Object.fromEntries(all.map(({ key, state }) => [key, state])));
    assert.equal((await partitionHistory(database, 'target', '2024-02-26')).length, 1, 'its history stays');

    assert.deepEqual(await verify(), { compared: 0, checksums: 0, unreadable: 0, findings: [] }, 'found once');
    assert.deepEqual(await passedOver(database, plain, [ALL_KEYS]), {
      ...{ outdated: 0, found: 5, firstFound: EMPTY, lastFound: '2024-02-29' },
    });
    await filled();
    assert.deepEqual(await verify(), { compared: 5, checksums: 0, unreadable: 0, findings: [] });
    assert.deepEqual(new Set(Object.values(await states())), new Set(['filled']));
  });

  it('keeps what it found on record until the partition is filled again', async () => {
    const key = '2024-02-28';
    const standing = () => standingFinding(database, 'target', key);
    const stand = async () => {
      const { found: count, firstFound, lastFound } = await passedOver(database, plain, [ALL_KEYS]);
      return [count, firstFound, lastFound];
    };
    const lose = async (): Promise<void> => {
      await test.sql('DELETE FROM target WHERE day = $1', [key]);
      assert.deepEqual((await verify()).findings, found([key, 3, 0, 'missing']));
      assert.deepEqual(await stand(), [1, key, key]);
    };
    await filled();
    assert.equal(await standing(), undefined);
    await lose();
    const [before, after] = [await standing(), (await verify(), await standing())];
    assert.ok(before && before.at.getTime() <= Date.now());
    assert.deepEqual(before, { at: before.at, ledgerRows: 3, tableRows: 0 });
    assert.deepEqual(after, before, 'found once');

    const lost = fillRequest(sqlPipeline('SELECT 1/0'), { key });
    await settled(fill(database, lost));
    await recordFailure(database, {
      ...{ pipeline: 'target', key, run: lost.owner.run, attempt: 1 },
      ...{ type: 'DataError', message: 'division by zero' },
    });
    assert.deepEqual(await standing(), before, 'a fill that failed heals nothing');
    await fill(database, fillRequest(plain, { key }));
    assert.equal(await standing(), undefined);
    assert.deepEqual(await stand(), [0, null, null]);

    await lose();
    // As a worker of the version before leaves it.
    await test.sql(
      `UPDATE repave.partition SET rows = 3, filled_at = clock_timestamp(), fingerprint = $2 WHERE key = $1`,
      [key, plain.fingerprint],
    );
    assert.deepEqual([await standing(), ...(await stand())], [undefined, 0, null, null]);
  });

  it('sees a changed value only by a checksum', async () => {
    const change = `UPDATE target SET n = 7 WHERE day = '2024-02-28' AND n = 1`;
    await filled();
    await test.sql(change);
    assert.deepEqual((await verify()).findings, [], 'as many rows');

    await filled(summed);
    assert.deepEqual(await verify({ pipeline: summed }), { compared: 5, checksums: 5, unreadable: 0, findings: [] });
    await test.sql(change);
    assert.deepEqual((await verify({ pipeline: summed })).findings, found(['2024-02-28', 3, 3, 'outdated']));
    assert.equal((await states(summed))['2024-02-28'], 'outdated');
  });

  it('takes a checksum as it was taken: whatever the session’s settings, and a column more; one of a column that is gone is left', async () => {
    await test.sql(`ALTER TABLE source ADD COLUMN at timestamptz DEFAULT now(), ADD COLUMN f float8 DEFAULT 0.1::float8 + 0.2, ADD COLUMN j json DEFAULT '{"a": 1}';
      ALTER TABLE target ADD COLUMN at timestamptz, ADD COLUMN f float8, ADD COLUMN j json`);
    const pipeline = sqlPipeline('SELECT day, n, at, f, j FROM source WHERE day = :date', { checksum: true });
    await filled(pipeline);
    await asSuperuser(
      test,
      `ALTER ROLE ${test.workerRole} IN DATABASE ${test.name} SET timezone = 'Asia/Tokyo';
       ALTER ROLE ${test.workerRole} IN DATABASE ${test.name} SET datestyle = 'German';
       ALTER ROLE ${test.workerRole} IN DATABASE ${test.name} SET extra_float_digits = 0`,
    );
    await test.sql('ALTER TABLE target ADD COLUMN later int DEFAULT 7');
    const other = await openDatabase(test.url, { fills: 1 });
    try {
      const signal = new AbortController().signal;
      const stretches = [];
      for await (const stretch of verifyPipeline(other, { pipeline, spans: [ALL_KEYS], dryRun: false, signal }))
        stretches.push(stretch);
      assert.deepEqual(stretches, [{ compared: 5, checksums: 5, unreadable: 0, findings: [], last: '2024-02-29' }]);
    } finally {
      await other.close();
    }
    await test.sql('ALTER TABLE target DROP COLUMN j');
    assert.deepEqual(await verify({ pipeline }), { compared: 5, checksums: 0, unreadable: 5, findings: [] });
  });

  it('takes no checksum by a column that has another type now, whose text is another for the same value', async () => {
    await filled(summed);
    await test.sql('ALTER TABLE target ALTER n TYPE numeric(12, 2)');
    assert.deepEqual(await verify({ pipeline: summed }), { compared: 5, checksums: 0, unreadable: 5, findings: [] });
  });

  for (const by of ['hour', 'day'] as const) {
    it(`compares checksums by the ${by} of a zone, across a change of its clock`, async () => {
      await test.sql(`DROP TABLE source, target; CREATE TABLE source (at timestamptz NOT NULL, n int); CREATE TABLE target (LIKE source);
        INSERT INTO source SELECT at, 1 FROM generate_series(timestamptz '2024-03-09 12:00Z', '2024-03-11 12:00Z', '30 minutes') at`);
      const pipeline = sqlPipeline('SELECT at, n FROM source WHERE at >= :start AND at < :end', {
        partition: { column: 'at', by, zone: 'America/New_York' },
        checksum: true,
      });
      await registerPipeline(database, pipeline);
      const keys = by === 'day' ? ['2024-03-09', '2024-03-10', '2024-03-11'] : ['2024-03-10T06Z', '2024-03-10T07Z'];
      for (const key of keys) await fill(database, fillRequest(pipeline, { key }));
      const { length } = keys;
      assert.deepEqual(await verify({ pipeline }), {
        compared: length,
        checksums: length,
        unreadable: 0,
        findings: [],
      });
      // The half hour before the clock goes forward: New York's 10th has 46 of them.
      await test.sql(`UPDATE target SET n = 2 WHERE at = '2024-03-10 06:30Z'`);
      const [key, rows] = by === 'day' ? (['2024-03-10', 46] as const) : (['2024-03-10T06Z', 2] as const);
      assert.deepEqual((await verify({ pipeline })).findings, found([key, rows, rows, 'outdated']));
    });
  }

  it('has no time limit of a single fill’s, and keeps a pass short by the rows between those that are compared too', async () => {
    await filled();
    await test.sql(`UPDATE repave.partition SET rows = 3000000 WHERE key >= '2024-02-26';
      UPDATE repave.partition SET fingerprint = 'older' WHERE key = '2024-02-27'`);
    const limits: string[] = [];
    const before = async ({ text, client }: Statement): Promise<void> => {
      if (!text.includes('width_bucket')) return;
      const { rows } = await unhooked(() => client.query<{ statement_timeout: string }>('SHOW statement_timeout'));
      limits.push(rows[0]?.statement_timeout ?? '');
    };
    const { compared } = await withStatements({ before }, () =>
      verify({ pipeline: { ...plain, timeoutMs: 10_000 }, dryRun: true }),
    );
    assert.equal(compared, 4);
    assert.deepEqual(limits, ['1h', '1h', '1h'], 'the 25th and 26th; the 28th; the 29th');
  });

  it('takes no checksum for that of a fill which kept none, as an older version’s worker does', async () => {
    await filled(summed);
    await test.sql(`UPDATE source SET n = 7 WHERE day = '2024-02-28'`);
    await fill(database, fillRequest({ ...summed, checksum: false }, { key: '2024-02-28' }));
    assert.deepEqual(await verify({ pipeline: summed }), { compared: 5, checksums: 4, unreadable: 0, findings: [] });
  });

  it('leaves alone what the ledger does not have as filled by today’s pipeline', async () => {
    await filled();
    await test.sql(`INSERT INTO target VALUES ('2024-02-20', 1); UPDATE repave.partition SET fingerprint = 'older' WHERE key = '2024-02-29';
      DELETE FROM target WHERE day = '2024-02-29'`);
    assert.deepEqual(await verify(), { compared: 4, checksums: 0, unreadable: 0, findings: [] });
    const outdated = async (to: string) => (await passedOver(database, plain, [{ from: EMPTY, to }])).outdated;
    assert.deepEqual([await outdated('2024-02-29'), await outdated('2024-02-28')], [1, 0]);
    await test.sql(`INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
      VALUES ('target', '2024-02', 'filled', 1, 'by month', now(), 'r', 1, 1)`);
    assert.equal(await outdated('2024-02-29'), 1, 'an earlier calendar’s key is no partition now');
  });

  it('looks at the rows that stand behind a failure, which stays one', async () => {
    await filled();
    const lost = fillRequest(sqlPipeline('SELECT 1/0'), { key: '2024-02-27' });
    await settled(fill(database, lost));
    await recordFailure(database, {
      ...{ pipeline: 'target', key: '2024-02-27', run: lost.owner.run, attempt: 1 },
      ...{ type: 'DataError', message: 'division by zero' },
    });
    assert.deepEqual((await verify()).findings, []);
    await test.sql(`DELETE FROM target WHERE day = '2024-02-27'`);
    assert.deepEqual((await verify()).findings, found(['2024-02-27', 2, 0, 'failed']));
    assert.equal((await states())['2024-02-27'], 'failed');
    assert.deepEqual((await verify()).compared, 4, 'found once');
  });

  it('sees the rows of the pipeline’s scope alone', async () => {
    await test.sql(`ALTER TABLE source ADD COLUMN tenant text; ALTER TABLE target ADD COLUMN tenant text;
      UPDATE source SET tenant = 'a'; INSERT INTO source SELECT day, n, 'b' FROM source`);
    const of = (tenant: string, scope: Scope = { tenant }) =>
      sqlPipeline(`SELECT * FROM source WHERE day = :date AND tenant = '${tenant}'`, { scope, name: tenant });
    const [a, b] = [of('a'), of('b')];
    await filled(a);
    await filled(b);
    await test.sql(`DELETE FROM target WHERE day = '2024-02-28' AND tenant = 'b'`);
    assert.deepEqual(await verify({ pipeline: a }), { compared: 5, checksums: 0, unreadable: 0, findings: [] });
    assert.deepEqual((await verify({ pipeline: b })).findings, found(['2024-02-28', 3, 0, 'missing']));
    assert.deepEqual(new Set(Object.values(await states(a))), new Set(['filled']));
  });

  it('goes over a long history in stretches, with gaps and none, and finds each day that differs', async () => {
    await registerPipeline(database, plain);
    // Ten years: all days of the first seven, then Mondays, then one a quarter.
    await test.sql(`INSERT INTO target SELECT day, 1 FROM generate_series(date '2010-01-01', '2019-12-31', '1 day') day;
      INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
      SELECT 'target', to_char(day, 'YYYY-MM-DD'), 'filled', 1, '${plain.fingerprint}', now(), 'seed', 1, 0
        FROM target WHERE CASE WHEN day < '2017-01-01' THEN true WHEN day < '2019-01-01' THEN extract(dow FROM day) = 1
                               ELSE extract(day FROM day) = 1 AND extract(month FROM day) IN (1, 4, 7, 10) END`);
    const all = await test.sql('SELECT FROM repave.partition');
    assert.deepEqual(await verify(), { compared: all.length, checksums: 0, unreadable: 0, findings: [] });
    const gone = ['2010-01-01', '2012-09-26', '2012-09-27', '2016-12-31', '2017-01-02', '2018-12-31', '2019-10-01'];
    await test.sql(`DELETE FROM target WHERE day = ANY ($1::date[] || ARRAY['2019-10-02'::date])`, [gone]);
    assert.deepEqual((await verify()).findings, found(...gone.map((key) => [key, 1, 0, 'missing'] as const)));
  });

  it('refuses a file with another calendar than workers have, whatever of it differs', async () => {
    await filled();
    for (const partition of [
      { column: 'day', by: 'month', zone: 'UTC' },
      { column: 'day', by: 'day', zone: 'America/New_York' },
    ] as const) {
      const failure = await failsAs(verify({ pipeline: sqlPipeline(QUERY, { partition }) }), 'InvalidInput');
      assert.match(failure.message, /Workers have target with another target, partition or scope/);
    }
  });

  it('a fill that commits between the look and the mark keeps what it says', async () => {
    await filled();
    await test.sql(`DELETE FROM target WHERE day IN ('2024-02-28', '2024-02-29')`);
    const { findings } = await beside(/^UPDATE repave\.partition/, () =>
      fill(database, fillRequest(plain, { key: '2024-02-29' })),
    );
    assert.deepEqual(findings, found(['2024-02-28', 3, 0, 'missing']));
    const after = await states();
    assert.deepEqual([after['2024-02-28'], after['2024-02-29']], ['missing', 'filled']);
  });

  const refilled = async (): Promise<void> => {
    await test.sql(`INSERT INTO source VALUES ('2024-02-28', 9)`);
    await fill(database, fillRequest(plain, { key: '2024-02-28' }));
  };

  it('a fill that commits between the look at the ledger and the count of the rows is no finding', async () => {
    await filled();
    assert.deepEqual((await beside(/width_bucket/, refilled, { dryRun: true })).findings, []);
    assert.deepEqual((await beside(/width_bucket/, refilled)).findings, []);
    assert.equal((await states())['2024-02-28'], 'filled');
  });

  it('a variant that reads each in a snapshot of its own has false findings: the test above would see them', async () => {
    await filled();
    const { findings } = await beside(/width_bucket/, refilled, { dryRun: true }, ({ text, values }) =>
      text.includes('REPEATABLE READ')
        ? { text: text.replace('REPEATABLE READ', 'READ COMMITTED'), values }
        : undefined,
    );
    assert.deepEqual(findings, found(['2024-02-28', 3, 4, 'outdated']));
  });

  for (const [what, change] of [
    ['an ALTER TABLE that rewrites it', 'ALTER TABLE target ALTER n TYPE bigint'],
    ['a reload', 'TRUNCATE target; INSERT INTO target SELECT * FROM source'],
    ['a table that takes its name', 'ALTER TABLE target RENAME TO former; CREATE TABLE target AS TABLE former'],
  ] as const) {
    it(`waits for the table where ${what} holds it, and sees the rows that are there then`, async () => {
      await filled();
      await withClient(test.ownerUrl, async (client) => {
        await client.query(`BEGIN; ${change}; GRANT SELECT ON target TO ${test.workerRole}`);
        const work = verify();
        await until('verify waits', waitsForATable);
        await client.query('COMMIT');
        assert.deepEqual(await work, { compared: 5, checksums: 0, unreadable: 0, findings: [] });
      });
      assert.deepEqual(new Set(Object.values(await states())), new Set(['filled']));
    });
  }

  it('waits anew where the table is taken once more between its wait and its look', async () => {
    await filled();
    await withClient(test.ownerUrl, async (client) => {
      const take = () => client.query('BEGIN; TRUNCATE target; INSERT INTO target SELECT * FROM source');
      const work = beside(/^BEGIN ISOLATION LEVEL REPEATABLE READ/, take);
      await until('verify waits', waitsForATable);
      await client.query('COMMIT');
      assert.deepEqual(await work, { compared: 5, checksums: 0, unreadable: 0, findings: [] });
    });
  });

  it('is ended at once while it waits for the table', async () => {
    await filled();
    const controller = new AbortController();
    const reason = new Error('interrupted');
    await withClient(test.ownerUrl, async (client) => {
      await client.query('BEGIN; LOCK TABLE target');
      const work = verify({ signal: controller.signal });
      const ended = assert.rejects(work, (error) => error === reason);
      await until('verify waits', waitsForATable);
      controller.abort(reason);
      await ended;
      assert.equal(await waitsForATable(), false, 'nothing of it is left on the server');
    });
  });

  it('beside fills without rest it never finds anything', async () => {
    await filled(summed);
    let over = false;
    let count = 0;
    const fills = (async () => {
      while (!over) {
        const key = KEYS[count % KEYS.length] ?? '';
        await test.sql(`INSERT INTO source VALUES ('${key}', ${count})`);
        await fill(database, fillRequest(summed, { key }));
        count += 1;
      }
    })();
    try {
      for (let round = 0; round < 100 || count <= 20; round++) {
        // A dry run says all that it sees; the others mark nothing that has been filled since.
        const seen = await Promise.race([verify({ pipeline: summed, dryRun: round % 2 === 0 }), fills]);
        assert.deepEqual(seen?.findings, []);
      }
    } finally {
      over = true;
      await fills;
    }
  });

  it('ends once it is interrupted', async () => {
    await filled();
    const controller = new AbortController();
    const reason = new Error('interrupted');
    const work = withStatements(
      { before: ({ text }) => (text.includes('width_bucket') ? controller.abort(reason) : undefined) },
      () => verify({ signal: controller.signal }),
    );
    await assert.rejects(work, (error) => error === reason);
  });

  it('rows that are there again can be adopted', async () => {
    await filled();
    await test.sql(`DELETE FROM target WHERE day = '2024-02-27'`);
    await verify();
    const windows = [EMPTY, ...KEYS].map((key) => windowOf(plain.partition, key));
    const { fingerprint } = plain;
    const by = { startedBy: 'ana@laptop', dryRun: false, signal: new AbortController().signal };
    const adopt = (run: string, empty: boolean) =>
      adoptWindows(database, { pipeline: plain, fingerprint, windows, run, empty, ...by });
    assert.deepEqual(await adopt('adopt/empty', true), { keys: [], rows: 0, empty: 0, known: 5 });
    assert.equal((await states())['2024-02-27'], 'missing', 'as it was found');
    await test.sql(`INSERT INTO target SELECT * FROM source WHERE day = '2024-02-27'`);
    assert.deepEqual((await adopt('adopt/again', false)).keys, ['2024-02-27']);
    assert.deepEqual(await verify(), { compared: 5, checksums: 0, unreadable: 0, findings: [] });
  });

  async function waitsForATable(): Promise<boolean> {
    const waits = await test.sql(`SELECT FROM pg_locks WHERE NOT granted AND relation IS NOT NULL
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`);
    return waits.length > 0;
  }

  /** Verifies, and does something just before the first statement of such a text. */
  function beside(
    text: RegExp,
    something: () => Promise<unknown>,
    options: Options = {},
    rewrite?: (statement: Statement) => { readonly text: string; readonly values: readonly unknown[] } | undefined,
  ) {
    let done = false;
    const before = async (statement: Statement): Promise<void> => {
      if (done || !text.test(statement.text)) return;
      done = true;
      await unhooked(something);
    };
    return withStatements({ before, rewrite }, () => verify(options));
  }
});
