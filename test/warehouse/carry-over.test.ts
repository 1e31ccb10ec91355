import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadPipelines } from '../../src/pipeline/load.js';
import { stateOf } from '../../src/warehouse/partition-state.js';
import { readBackfills, beginBackfill } from '../../src/warehouse/backfills.js';
import { formerRows } from '../../src/warehouse/carry-over.js';
import type { Database } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { registeredPipelines, registerPipeline } from '../../src/warehouse/ledger.js';
import { partitionHistory, partitionRows } from '../../src/warehouse/partitions.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, sqlPipeline, until, withWorker } from '../support/fill.js';
import { withClient } from '../support/template.js';

const QUERY = 'SELECT :date::date AS day, k AS n FROM generate_series(1, 3) k';
const old = sqlPipeline(QUERY, { name: 'sales_daily' });
/** The same file under another name: its fingerprint is the same. */
const renamed = sqlPipeline(QUERY, { name: 'sales', formerly: 'sales_daily' });
const LOST = { type: 'CheckFailed', message: 'rows', attempt: 1 } as const;

describe('carrying a renamed pipeline’s ledger over', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, n int); CREATE TABLE other (day date NOT NULL, n int)');
  });
  after(() => test.drop());
  beforeEach(() =>
    test.sql(
      `TRUNCATE target, repave.pipeline, repave.partition, repave.fill, repave.failure, repave.claim, repave.backfill`,
    ),
  );

  const asWorker = <T>(use: (database: Database) => Promise<T>): Promise<T> => withWorker(test, use);

  /** Registers the old name, fills two partitions under it and fails on a third. */
  async function history(database: Database): Promise<void> {
    await registerPipeline(database, old);
    for (const key of ['2024-02-28', '2024-02-29']) await fill(database, fillRequest(old, { key }));
    const lost = fillRequest(sqlPipeline('SELECT 1/0', { name: 'sales_daily' }), { key: '2024-03-01' });
    await assert.rejects(fill(database, lost));
    await recordFailure(database, { pipeline: 'sales_daily', key: '2024-03-01', run: lost.owner.run, ...LOST });
    await beginBackfill(database, {
      run: 'a-run',
      id: 'backfill/sales_daily/x',
      pipeline: 'sales_daily',
      input: {},
      total: 3,
    });
  }

  it('keeps every state, fill, failure and backfill, under the new name', () =>
    asWorker(async (database) => {
      await history(database);
      const [before] = await registeredPipelines(database);
      const states = async (name: string) =>
        [...(await partitionRows(database, name)).values()].map((row) => [row.key, stateOf(row, renamed.fingerprint)]);
      const was = await states('sales_daily');
      assert.equal(await formerRows(database, renamed, 'public.target'), 3);
      assert.equal(await formerRows(database, old, 'public.target'), 0);
      assert.equal(await formerRows(database, renamed, 'public.other'), 0);

      assert.deepEqual(await registerPipeline(database, renamed), {
        former: 'sales_daily',
        partitions: 3,
        unfinished: ['backfill/sales_daily/x'],
      });

      assert.deepEqual(await states('sales'), was);
      assert.deepEqual(was, [
        ['2024-02-28', 'filled'],
        ['2024-02-29', 'filled'],
        ['2024-03-01', 'failed'],
      ]);
      assert.deepEqual(await states('sales_daily'), []);
      const kinds = async (key: string) => (await partitionHistory(database, 'sales', key)).map(({ kind }) => kind);
      assert.deepEqual([await kinds('2024-02-29'), await kinds('2024-03-01')], [['fill'], ['failure']]);
      assert.equal((await readBackfills(database, { pipeline: 'sales', limit: 10 }))[0]?.run, 'a-run');
      const [registered, ...more] = await registeredPipelines(database);
      assert.deepEqual([registered?.name, more], ['sales', []]);
      assert.deepEqual(registered?.since, before?.since, 'its fingerprint is as old as it was');

      assert.equal(await registerPipeline(database, renamed), undefined, 'once');
      assert.equal(await formerRows(database, renamed, 'public.target'), 0);
      assert.equal((await fill(database, fillRequest(renamed, { key: '2024-03-01' }))).rows, 3);
    }));

  it('has what came after the former name come after the new one, until its own file says so', () =>
    asWorker(async (database) => {
      await history(database);
      const other = { ...sqlPipeline(QUERY, { name: 'monthly', target: { table: 'other' } }), after: ['sales_daily'] };
      await registerPipeline(database, other);
      await registerPipeline(database, renamed);
      const monthly = (await registeredPipelines(database)).find(({ name }) => name === 'monthly');
      assert.deepEqual(monthly?.after, ['sales']);
    }));

  it('refuses a fill under the former name from then on, and what is left of it stands in nobody’s way', () =>
    asWorker(async (database) => {
      await history(database);
      await registerPipeline(database, renamed);
      const late = fillRequest(old, { key: '2024-02-28' });
      const failure = await failsAs(fill(database, late), 'InvalidPipeline');
      assert.match(failure.message, /also the target of sales /);
      const left = { pipeline: 'sales_daily', key: '2024-02-28', run: late.owner.run };
      await recordFailure(database, { ...left, ...LOST });
      assert.equal((await partitionRows(database, 'sales_daily')).size, 1);
      assert.equal(await registerPipeline(database, renamed), undefined);
      assert.equal((await partitionRows(database, 'sales')).get('2024-02-28')?.outcome, 'filled');
    }));

  it('waits for the fills of the former name that run, and loses none of them', () =>
    asWorker(async (database) => {
      await history(database);
      await withClient(test.ownerUrl, async (reader) => {
        // The fill has its own locks, and waits for the table.
        await reader.query('BEGIN; LOCK TABLE target IN SHARE MODE');
        const running = fill(database, fillRequest(old, { key: '2024-01-01' }));
        const waits = (what: string) => async () => {
          const [row] = await test.sql<{ waits: boolean }>(
            `SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = $1 AND NOT granted
                               AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS waits`,
            [what],
          );
          return row?.waits;
        };
        await until('the fill waits for the table', waits('relation'));
        const registering = registerPipeline(database, renamed);
        await until('the registration waits for the grid', waits('advisory'));
        await reader.query('COMMIT');
        assert.equal((await running).rows, 3);
        assert.equal((await registering)?.partitions, 4);
      });
      assert.equal((await partitionRows(database, 'sales')).get('2024-01-01')?.outcome, 'filled');
    }));

  it('carries what is left of a name that is registered no more', () =>
    asWorker(async (database) => {
      await history(database);
      await test.sql('DELETE FROM repave.pipeline');
      await registerPipeline(database, { ...renamed, formerly: undefined });
      assert.equal((await registerPipeline(database, renamed))?.partitions, 3);
      assert.deepEqual(
        (await registeredPipelines(database)).map(({ name }) => name),
        ['sales'],
      );
    }));

  it('leaves a former name alone that has another target now', () =>
    asWorker(async (database) => {
      await history(database);
      await test.sql(`UPDATE repave.pipeline SET target = 'public.other'`);
      assert.equal(await registerPipeline(database, renamed), undefined);
      assert.equal((await partitionRows(database, 'sales_daily')).size, 3);
    }));

  it('refuses where both names have rows, and says what to do', () =>
    asWorker(async (database) => {
      await history(database);
      await test.sql('DELETE FROM repave.pipeline');
      await fill(database, fillRequest(renamed));
      await test.sql('DELETE FROM repave.pipeline');
      await registerPipeline(database, old);
      const failure = await failsAs(registerPipeline(database, renamed), 'InvalidPipeline');
      assert.match(
        failure.message,
        /rows of sales and of sales_daily.*take `formerly` out.*DELETE FROM repave\.pipeline/,
      );
      assert.equal(await formerRows(database, renamed, 'public.target'), 0);
      assert.equal((await partitionRows(database, 'sales_daily')).size, 3, 'nothing was carried');
    }));

  describe('by the function itself', () => {
    const carry = (database: Database, former: string, name: string) =>
      database.query('SELECT repave.carry_over($1, $2)', [former, name]);

    it('loses nothing: a name that has rows takes no others, and it can be undone', () =>
      asWorker(async (database) => {
        await history(database);
        await fill(database, fillRequest({ ...old, name: 'other', target: { table: 'other' } }));
        const all = () => test.sql('SELECT pipeline, key, run FROM repave.fill ORDER BY id');
        const before = await all();
        await failsAs(carry(database, 'sales_daily', 'other'), 'DataError');
        await failsAs(carry(database, 'sales_daily', 'sales_daily'), 'DataError');
        await failsAs(carry(database, 'nothing', 'nothing'), 'DataError');
        assert.deepEqual(await all(), before);
        await carry(database, 'sales_daily', 'x');
        assert.notDeepEqual(await all(), before);
        await carry(database, 'x', 'sales_daily');
        assert.deepEqual(await all(), before);
        assert.deepEqual(
          (await registeredPipelines(database)).map(({ name }) => name),
          ['sales_daily'],
        );
      }));

    it('means the same to a caller with objects of its own in front', () =>
      withClient(test.superuserUrl, async (client) => {
        await client.query(`CREATE SCHEMA evil;
          CREATE FUNCTION evil.never(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT false';
          CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.never);
          INSERT INTO repave.pipeline (name, target, partition_column, by, zone, fingerprint) VALUES ('a', 't', 'c', 'day', 'UTC', 'v1:');
          SET search_path = evil, pg_catalog; SELECT repave.carry_over('a', 'b')`);
        assert.deepEqual(await test.sql('SELECT name FROM repave.pipeline'), [{ name: 'b' }]);
      }));

    it('is nobody’s but the worker’s role’s', async () => {
      const [row] = await test.sql(
        `SELECT prosecdef, proconfig, has_function_privilege('public', oid, 'EXECUTE') AS everybody
           FROM pg_proc WHERE oid = 'repave.carry_over(text, text)'::regprocedure`,
      );
      assert.deepEqual(row, { prosecdef: true, proconfig: ['search_path=pg_catalog, pg_temp'], everybody: false });
    });
  });
});

describe('a pipeline’s `formerly`', () => {
  it('names no file that is still there, and not its own', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'repave-formerly-'));
    const file = (formerly: string) =>
      `-- repave\n-- target: t\n-- partition: { column: day, by: day }\n-- formerly: ${formerly}\nSELECT :date AS day\n`;
    try {
      writeFileSync(join(folder, 'sales.sql'), file('sales_daily'));
      assert.deepEqual([...(await loadPipelines(folder)).pipelines.keys()], ['sales']);
      writeFileSync(join(folder, 'sales_daily.sql'), 'not even a pipeline');
      const { pipelines, broken } = await loadPipelines(folder);
      assert.deepEqual([...pipelines.keys()], []);
      assert.match(broken.get('sales')?.message ?? '', /sales_daily\.sql still is: remove that file, or `formerly`/);
      writeFileSync(join(folder, 'own.sql'), file('own'));
      assert.match((await loadPipelines(folder)).broken.get('own')?.message ?? '', /its own name/);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it('changes no fingerprint, nor does the name: a renamed pipeline’s partitions are not outdated', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'repave-formerly-'));
    const sql = (formerly: string) =>
      `-- repave\n-- target: t\n-- partition: { column: day, by: day }\n${formerly}SELECT :date AS day\n`;
    const code = (formerly: string) => `import { definePipeline } from 'repave';
import { ONE } from '../shared.js';
export default definePipeline({
  target: 't',
  ${formerly}partition: { column: 'day', by: 'day' },
  *rows({ key }) { yield { day: key, n: ONE }; },
});
`;
    const pipelines = join(folder, 'pipelines');
    const loaded = async () => (await loadPipelines(pipelines)).pipelines;
    try {
      mkdirSync(pipelines);
      writeFileSync(join(folder, 'shared.ts'), 'export const ONE = 1;');
      writeFileSync(join(pipelines, 'q_old.sql'), sql(''));
      writeFileSync(join(pipelines, 'c_old.ts'), code(''));
      const before = await loaded();
      const [query, own] = [before.get('q_old')?.fingerprint, before.get('c_old')?.fingerprint];
      assert.ok(query && own);
      rmSync(join(pipelines, 'q_old.sql'));
      rmSync(join(pipelines, 'c_old.ts'));
      writeFileSync(join(pipelines, 'q.sql'), sql('-- formerly: q_old\n'));
      for (const formerly of ["formerly: 'c_old',\n  ", 'formerly: "c_old", ', '']) {
        writeFileSync(join(pipelines, 'c.ts'), code(formerly));
        const after = await loaded();
        assert.equal(after.get('c')?.formerly, formerly === '' ? undefined : 'c_old');
        assert.deepEqual([after.get('q')?.fingerprint, after.get('c')?.fingerprint], [query, own], formerly);
      }
      writeFileSync(join(folder, 'shared.ts'), 'export const ONE = 2;');
      assert.notEqual((await loaded()).get('c')?.fingerprint, own);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
