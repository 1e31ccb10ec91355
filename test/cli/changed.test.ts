import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { comparePlan } from '../../src/cli/plan-against.js';
import { showPlan } from '../../src/cli/plan.js';
import type { BackfillInput } from '../../src/contract.js';
import type { Failure } from '../../src/failure.js';
import { loadPipeline } from '../../src/pipeline/load.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { registerPipeline } from '../../src/warehouse/ledger.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest } from '../support/fill.js';
import { keptContext } from './plan-context.js';
import { makeProject, repave } from './repave.js';

const FILE = `-- repave
-- target: daily
-- partition: { column: day, by: day }
-- start: 2024-01-01
-- changed: rows
SELECT sold_on AS day, sum(amount) AS n FROM sales WHERE sold_on = :date GROUP BY sold_on
`;
const CODE = `
import { definePipeline } from 'repave';
export default definePipeline({
  target: 'coded',
  partition: { column: 'day', by: 'day' },
  start: '2024-01-01',
  changed: ({ key }) => (key === '2024-01-02' ? 2 : 1),
  *rows({ key }) { yield { day: key }; },
});
`;
const DAYS = ['2024-01-01', '2024-01-02', '2024-01-03', '2024-01-04', '2024-01-05'] as const;
const ALL = { from: '2024-01-01', to: '2024-01-05' } as const;

describe('partitions that have changed at their source, in the command', () => {
  let project: string;
  let target: TestDatabase;
  let shop: TestDatabase;
  let database: Database;
  let source: Database;
  let env: Record<string, string>;
  const path = (name: string): string => join(project, 'pipelines', name);

  before(async () => {
    project = makeProject({
      'pipelines/daily.sql': FILE,
      'pipelines/blind.sql': FILE.replace('-- changed: rows\n', '').replace('target: daily', 'target: blind'),
      'pipelines/shop.sql': FILE.replace('target: daily', 'target: from_shop\n-- source: SHOP_URL'),
      'pipelines/coded.ts': CODE,
    });
    [target, shop] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    const sales = `CREATE TABLE sales (sold_on date NOT NULL, amount int NOT NULL);
      INSERT INTO sales SELECT d::date, 1 FROM generate_series(date '2024-01-01', date '2024-01-05', interval '1 day') d;`;
    await target.sql(`${sales} CREATE TABLE daily (day date NOT NULL, n bigint); CREATE TABLE blind (LIKE daily);
      CREATE TABLE from_shop (LIKE daily); CREATE TABLE coded (day date NOT NULL)`);
    await shop.sql(`${sales} GRANT SELECT ON sales TO PUBLIC`);
    env = { DATABASE_URL: target.url, SHOP_URL: shop.url };
    database = await openDatabase(target.url, { fills: 2 });
    source = await openDatabase(shop.url, { fills: 2, readOnly: true });
    for (const name of ['daily', 'shop', 'coded']) {
      const pipeline = await loadPipeline(join(project, 'pipelines'), name);
      await registerPipeline(database, pipeline);
      for (const key of DAYS) {
        const request = fillRequest(pipeline, { key });
        await fill(database, name === 'shop' ? { ...request, source } : request);
      }
    }
  });
  after(async () => {
    await Promise.all([database.close(), source.close()]);
    await Promise.all([target.drop(), shop.drop()]);
    rmSync(project, { recursive: true, force: true });
  });

  interface Planned {
    readonly code: number;
    readonly said: string;
    readonly counts: Readonly<Record<string, number>>;
    readonly keys: readonly string[];
    readonly notes: readonly string[];
    readonly text: string;
  }
  const planned = async (input: BackfillInput): Promise<Planned> => {
    const context = keptContext(project, env, { json: true });
    const code = await showPlan(context, input);
    const text = context.stdout();
    const { partitions, ...plan } = JSON.parse(text) as Planned & { partitions: readonly { key: string }[] };
    return { ...plan, code, text, said: context.stderr(), keys: partitions.map(({ key }) => key) };
  };
  const refused = (input: BackfillInput, says: RegExp): Promise<void> =>
    assert.rejects(planned(input), (error: Failure) => {
      assert.equal(error.type, 'InvalidInput');
      assert.match(error.message, says);
      return true;
    });

  it('are planned, each with its reason, and the plan is a command', async () => {
    assert.equal((await planned({ pipeline: 'daily', only: ['changed'] })).keys.length, 0);
    await target.sql(`UPDATE sales SET amount = 2 WHERE sold_on = '2024-01-03'`);
    const { keys, counts, said, text } = await planned({ pipeline: 'daily', ...ALL, only: ['changed', 'missing'] });
    assert.deepEqual(keys, ['2024-01-03']);
    assert.deepEqual(counts, { failed: 0, missing: 0, outdated: 0, changed: 1, filled: 0 });
    assert.match(said, /1 partition to fill \(1 changed\)/);
    assert.match(said, /repave backfill daily 2024-01-01\.\.2024-01-05 --only changed,missing --plan p1-\w+-changed1-/);
    // Whoever names them all asks no source.
    assert.deepEqual((await planned({ pipeline: 'daily', ...ALL })).counts, {
      failed: 0,
      missing: 0,
      outdated: 0,
      changed: 0,
      filled: 5,
    });
    writeFileSync(join(project, 'kept.json'), text);
    const compare = async () => {
      const context = keptContext(project, env);
      return {
        code: await comparePlan(context, { pipeline: 'daily' }, join(project, 'kept.json'), {}),
        text: context.stdout(),
      };
    };
    assert.deepEqual(await compare(), { code: 0, text: '' });
    await target.sql(`UPDATE sales SET amount = 2 WHERE sold_on = '2024-01-05'`);
    assert.deepEqual(await compare(), { code: 1, text: '+ 2024-01-05  changed\n' });
  });

  it('are held against a plan that an earlier version kept, which knew no such reason', async () => {
    const old = JSON.parse((await planned({ pipeline: 'daily', ...ALL })).text) as { counts: Record<string, number> };
    delete old.counts.changed;
    writeFileSync(join(project, 'old.json'), JSON.stringify(old));
    const context = keptContext(project, env);
    assert.equal(await comparePlan(context, { pipeline: 'daily' }, join(project, 'old.json'), {}), 0);
    assert.match(context.stderr(), /The plan is the same: 5 partitions \(5 filled\)/);
  });

  it('are asked of another server and of code as the file says', async () => {
    await shop.sql(`DELETE FROM sales WHERE sold_on = '2024-01-04'`);
    assert.deepEqual((await planned({ pipeline: 'shop', only: ['changed'] })).keys, ['2024-01-04']);
    writeFileSync(path('coded.ts'), CODE.replace('? 2 : 1', '? 3 : 1'));
    try {
      const { keys, notes } = await planned({ pipeline: 'coded', only: ['changed'] });
      assert.deepEqual(keys, ['2024-01-02']);
      assert.match(
        notes.join(),
        /Workers have another version .* What has changed at the source was asked as this file says\./,
      );
    } finally {
      writeFileSync(path('coded.ts'), CODE);
    }
  });

  it('are asked by no file of another calendar', async () => {
    writeFileSync(path('daily.sql'), FILE.replace('by: day', 'by: day, zone: Asia/Tokyo'));
    try {
      await refused(
        { pipeline: 'daily', only: ['changed'] },
        /^Workers have daily with another target, partition or scope/,
      );
    } finally {
      writeFileSync(path('daily.sql'), FILE);
    }
  });

  it('are asked of nothing where the file is not here, or does not say how', async () => {
    await refused(
      { pipeline: 'blind', only: ['changed'] },
      /^only has changed, and blind has no `changed` .*`changed: rows`/,
    );
    rmSync(path('daily.sql'));
    try {
      await refused(
        { pipeline: 'daily', only: ['missing', 'changed'] },
        /asked of the source as the pipeline's file says, and there is no file here: .*daily/,
      );
      assert.equal((await planned({ pipeline: 'daily', ...ALL, only: ['missing'] })).keys.length, 0);
    } finally {
      writeFileSync(path('daily.sql'), FILE);
    }
  });

  it('have their version shown by try, and kept in the history', async () => {
    const people = await repave(project, ['try', 'coded', '2024-01-02', '--no-color'], env);
    assert.match(people.stdout, /\n {2}version of its source: 2\n/, people.stderr);
    const tried = JSON.parse((await repave(project, ['try', 'daily', '2024-01-01', '--json'], env)).stdout) as {
      sourceVersion: string;
      seconds: object;
    };
    const history = JSON.parse((await repave(project, ['history', 'daily', '2024-01-01', '--json'], env)).stdout) as {
      entries: readonly { sourceVersion: string }[];
    };
    assert.match(tried.sourceVersion, /^\d+\/1 1 -?\d+ by [0-9a-f]{8}$/);
    assert.deepEqual(Object.keys(tried.seconds), ['lock', 'delete', 'insert', 'check']);
    assert.deepEqual(
      history.entries.map(({ sourceVersion }) => sourceVersion),
      [tried.sourceVersion],
    );
  });

  it('are said of by check, at their line, where the server cannot say', async () => {
    await target.sql('CREATE VIEW seen AS SELECT * FROM sales; GRANT SELECT ON seen TO PUBLIC');
    writeFileSync(
      path('viewed.sql'),
      FILE.replace('FROM sales', 'FROM seen').replace('target: daily', 'target: blind'),
    );
    try {
      const { code, stdout } = await repave(project, ['check', 'viewed', '--no-color'], env);
      assert.equal(code, 1);
      assert.match(stdout, /viewed\.sql:5.*`changed: rows` of viewed counts versions of rows, and "seen" is a view/);
    } finally {
      rmSync(path('viewed.sql'));
    }
  });
});
