import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { checkPipelines } from '../../src/cli/check-pipelines.js';
import type { CheckedPipeline } from '../../src/cli/checked-pipeline.js';
import { loadPipeline } from '../../src/pipeline/load.js';
import { loadSettings } from '../../src/settings.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, withWorker } from '../support/fill.js';
import { document, type Ended, makeProject, repave, SALES_SUMMARY } from './repave.js';

interface CheckDocument {
  readonly version: number;
  readonly ok: boolean;
  readonly pipelines: readonly CheckedPipeline[];
}

/** An unknown setting, an unknown column, a NOT NULL column left out, a text for a number, the target read, and a zone of its own. */
const SEVEN = `-- repave
-- target: seven
-- partition:
--   column: sale_date
--   by: day
--   zone: Europe/Berlin
-- cheks: [{ rows: { min: 1 } }]
-- checks: [{ unique: [sale_date] }]
WITH s AS (
  SELECT * FROM sales
)
SELECT s.sold_on AS sale_date,
       count(*) AS orders,
       max(s.note) AS units,
       NULL AS comment,
       sum(s.amount) AS revenu
FROM   s
LEFT   JOIN seven AS before ON before.sale_date = s.sold_on
WHERE  s.sold_on >= :date AND s.sold_on < :end_date
GROUP  BY 1
`;
const SEVEN_FOUND: readonly (readonly [line: number, type: string, message: RegExp])[] = [
  [2, 'InvalidPipeline', /foreign keys that cascade \(returned_sale_date_fkey\)/],
  [6, 'InvalidPipeline', /zone/],
  [7, 'InvalidPipeline', /unknown setting "cheks"\. Did you mean checks\?/],
  [12, 'SchemaMismatch', /"revenue" of public\.seven is NOT NULL and is not given/],
  [14, 'SchemaMismatch', /"units" as text, and the column is of type integer/],
  [16, 'SchemaMismatch', /"revenu" is not in public\.seven/],
  [18, 'InvalidPipeline', /reads its own target seven/],
];

const TENANT = (tenant: string, ...lines: string[]): string =>
  `-- repave
-- target: shared
-- partition: { column: day, by: day }
${lines.map((line) => `-- ${line}\n`).join('')}-- scope: { tenant: ${tenant} }
SELECT :date AS day, '${tenant}' AS tenant
`;

describe('repave check', function () {
  this.timeout(600_000);
  let database: TestDatabase;
  let other: TestDatabase;
  let env: Record<string, string>;
  const projects: string[] = [];

  before(async () => {
    database = await createTestDatabase();
    other = await createTestDatabase({ ledger: false });
    env = { DATABASE_URL: database.url };
    await database.sql(`
      CREATE TABLE sales (sold_on date NOT NULL, amount numeric(10, 2) NOT NULL, note text);
      INSERT INTO sales SELECT '2024-02-29', 12.50, 'x' FROM generate_series(1, 3);
      CREATE TABLE seven (sale_date date PRIMARY KEY, orders int NOT NULL, units int, revenue numeric(12, 2) NOT NULL, comment text);
      CREATE TABLE returned (sale_date date REFERENCES seven ON DELETE CASCADE);
      CREATE TABLE shared (day date NOT NULL, tenant text NOT NULL);
      CREATE INDEX ON shared (day)`);
    await other.sql('CREATE TABLE remote (day date NOT NULL, amount numeric(12, 4), label text)');
  });
  after(async () => {
    await Promise.all([database.drop(), other.drop()]);
    for (const project of projects) rmSync(project, { recursive: true, force: true });
  });
  afterEach(() => database.sql('DELETE FROM repave.pipeline'));

  function project(pipelines: Readonly<Record<string, string>>): string {
    const made = makeProject(
      Object.fromEntries(Object.entries(pipelines).map(([path, text]) => [`pipelines/${path}`, text])),
    );
    projects.push(made);
    return made;
  }

  const register = (name: string, target: string, zone = 'UTC', scope = {}, column = 'day'): Promise<unknown> =>
    database.sql(
      `INSERT INTO repave.pipeline (name, target, partition_column, by, zone, scope, fingerprint) VALUES ($1, $2, $3, 'day', $4, $5, 'v1:x')`,
      [name, target, column, zone, scope],
    );

  const inJson = async (
    pipelines: Readonly<Record<string, string>>,
    words: readonly string[] = [],
  ): Promise<CheckDocument & { readonly ended: Ended }> => {
    const ended = await repave(project(pipelines), ['check', ...words, '--json'], env);
    return { ...document<CheckDocument>(ended), ended };
  };

  /** What the command would write, without a process of its own. */
  const check = (
    pipelines: Readonly<Record<string, string>>,
    environment: Readonly<Record<string, string>> = {},
  ): Promise<CheckedPipeline[]> =>
    checkPipelines(loadSettings({ ...env, ...environment }, project(pipelines)), undefined);

  function assertSeven(checked: CheckedPipeline | undefined): void {
    assert.deepEqual(
      checked?.problems.map(({ line, type }) => [line, type]),
      SEVEN_FOUND.map(([line, type]) => [line, type]),
      JSON.stringify(checked?.problems, null, 1),
    );
    for (const [i, [, , message]] of SEVEN_FOUND.entries()) assert.match(checked.problems[i]?.message ?? '', message);
  }

  it('names exactly the seven faults of one file, each with its line, where the ledger has another zone', async () => {
    await register('seven', 'public.seven', 'UTC', {}, 'sale_date');
    const { version, ok, pipelines, ended } = await inJson({ 'seven.sql': SEVEN });
    assert.deepEqual([version, ok, ended.code, pipelines.length], [1, false, 1, 1]);
    assertSeven(pipelines[0]);
    assert.match(
      pipelines[0]?.problems[1]?.message ?? '',
      /changes zone from UTC to Europe\/Berlin.*repave backfill seven/,
    );
    assert.deepEqual(pipelines[0]?.warnings, []);
  });

  it('names them for people too, in the order of the file, where another file has another zone', async () => {
    const files = { 'seven.sql': SEVEN, 'mart/eight.sql': SALES_SUMMARY.replace('sales_summary', 'seven') };
    const { pipelines, ended } = await inJson(files, ['seven']);
    assert.equal(ended.code, 1);
    assertSeven(pipelines[0]);
    assert.match(
      pipelines[0]?.problems[1]?.message ?? '',
      /target of mart\/eight too.*zone is Europe\/Berlin here and UTC there/,
    );
    const text = await repave(project(files), ['check'], env);
    assert.equal(text.code, 1);
    const lines = text.stdout.split('\n');
    const first = lines.indexOf('✗ seven');
    assert.deepEqual(
      lines.slice(first + 1, first + 8).map((line) => /^ {2}✗ pipelines\/seven\.sql:(\d+): /.exec(line)?.[1]),
      SEVEN_FOUND.map(([line]) => String(line)),
      text.stdout,
    );
    assert.match(text.stderr, /2 pipelines checked, 2 with problems\n$/);
  });

  it('writes CREATE TABLE for a target that is missing, and finds nothing once it is made', async () => {
    const query = `-- repave
-- target: '"Mart"."Daily Sales"'
-- partition: { column: "Day", by: day }
SELECT sold_on AS "Day", count(*) AS orders, sum(amount)::numeric(12, 2) AS "order", array_agg(note) AS notes,
       amount, NULL AS remark
FROM   sales WHERE sold_on >= :date AND sold_on < :end_date GROUP BY sold_on, amount
`;
    const folder = project({ 'daily.sql': query });
    const missing = await repave(folder, ['check'], env);
    assert.equal(missing.code, 1);
    assert.match(missing.stdout, /^✗ daily\n {2}✗ pipelines\/daily\.sql:2: The target .* is not there.*\n$/);
    const { code, stdout } = await repave(folder, ['check', 'daily', '--ddl'], env);
    assert.equal(code, 0);
    assert.equal(
      stdout,
      `CREATE TABLE "Mart"."Daily Sales" (
  "Day" date NOT NULL,
  orders bigint,
  "order" numeric(12,2),
  notes text[],
  amount numeric(10,2),
  remark text -- a bare text or NULL in the query: say the type that is meant
);
CREATE INDEX ON "Mart"."Daily Sales" ("Day");
`,
    );
    await database.sql(`CREATE SCHEMA "Mart"; GRANT USAGE ON SCHEMA "Mart" TO ${database.workerRole}; ${stdout}`);
    const made = await repave(folder, ['check', 'daily'], env);
    assert.equal(made.code, 0, made.stdout);
    assert.match(made.stdout, /^✓ daily\n {2}"Mart"\."Daily Sales", by day of Day, zone UTC\n/);
    assert.match(made.stdout, /\n {2}order\tnumeric\(12,2\)\tnumeric\(12,2\)\tsame\n/);
    assert.match(made.stdout, /\n {2}"Mart"\."Daily Sales": index Daily Sales_Day_idx\n/);
    assert.match(made.stdout, /\n {2}INSERT INTO "Mart"\."Daily Sales" \("Day", .*\n {2}SELECT sold_on AS "Day"/);
    assert.match(made.stdout, /\n {4}\$2 end_date date \d{4}-\d\d-\d\d\n/);
    const pipeline = await loadPipeline(join(folder, 'pipelines'), 'daily');
    const { rows } = await withWorker(database, (opened) => fill(opened, fillRequest(pipeline)));
    assert.equal(rows, 1);
  });

  it('refuses --ddl where there are no types to write', async () => {
    const folder = project({
      'code.ts': `import { definePipeline } from 'repave';\nexport default definePipeline({ target: 't', partition: { column: 'd', by: 'day' }, rows: () => [] });`,
      'dateless.sql': '-- repave\n-- target: t\n-- partition: { column: d, by: day }\nSELECT 1 AS d',
    });
    const cases: [string[], RegExp][] = [
      [['--ddl'], /--ddl is given without a pipeline/],
      [['code', '--ddl'], /code is written in TypeScript/],
      [['dateless', '--ddl'], /partition column "d" as integer: expected date/],
    ];
    for (const [words, message] of cases) {
      const ended = await repave(folder, ['check', ...words], env);
      assert.equal(ended.code, 2, ended.stderr);
      assert.match(ended.stderr, message);
    }
  });

  it('lets pipelines of disjoint scopes share a table, and no others', async () => {
    const fine = await check({ 'acme.sql': TENANT('acme'), 'umbra.sql': TENANT('umbra') });
    assert.deepEqual(
      fine.map(({ problems }) => problems),
      [[], []],
    );
    const clash = await check({
      'acme.sql': TENANT('acme'),
      'again.sql': TENANT('acme', 'lookback: 1'),
      'weekly.sql': TENANT('umbra').replace('by: day', 'by: week'),
    });
    const found = clash.map(({ name, problems }) => [name, ...problems.map(({ line }) => line)]);
    assert.deepEqual(found, [
      ['acme', 3, 4],
      ['again', 3, 5],
      ['weekly', 3],
    ]);
    assert.match(
      clash[1]?.problems[1]?.message ?? '',
      /target of acme too: tenant = "acme" here and tenant = "acme" there may be of one row/,
    );
    assert.match(
      clash[2]?.problems[0]?.message ?? '',
      /target of acme and again too, which cut it into other partitions: by is week here and day there\. Pipe/,
    );
  });

  it('says in one line that many pipelines share a table, and names a few', async () => {
    const plain = TENANT('acme').replace(/-- scope.*\n/, '');
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];
    const pipelines = await check(Object.fromEntries(names.map((name) => [`${name}.sql`, plain])));
    for (const { problems } of pipelines) assert.equal(problems.length, 1, JSON.stringify(problems));
    assert.equal(
      pipelines[0]?.problems[0]?.message,
      'public.shared is the target of b, c, d, e, f and 2 more too: they would overwrite each other. Give each a `scope` of its own, or a table.',
    );
    const clash = await check({
      'acme.sql': TENANT('acme'),
      'all.sql': plain,
      'same.sql': TENANT('acme'),
      'monthly.sql': TENANT('b').replace('by: day', 'by: month'),
      'weekly.sql': TENANT('c').replace('by: day', 'by: week'),
    });
    assert.deepEqual(
      clash[0]?.problems.map(({ message }) => message),
      [
        'public.shared is the target of monthly and weekly too, which cut it into other partitions: by is day here and month there (monthly); by is day here and week there (weekly). Pipelines of one target need the same ones.',
        'public.shared is the target of all and same too: tenant = "acme" here and no scope (all); tenant = "acme" (same) there may be of one row. Give each a scope on one column, with different values.',
      ],
    );
    await register('gone', 'public.shared');
    await register('lost', 'public.shared');
    const [acme] = await check({ 'acme.sql': TENANT('acme') });
    assert.equal(acme?.problems.length, 1);
    assert.match(
      acme.problems[0]?.message ?? '',
      /gone and lost, by the ledger, too: .*WHERE name IN \('gone', 'lost'\)/,
    );
  });

  it('knows what the ledger has under other names, and a former one', async () => {
    await register('gone', 'public.shared');
    const found = async (text: string): Promise<CheckedPipeline | undefined> => (await check({ 'acme.sql': text }))[0];
    const rival = await found(TENANT('acme'));
    assert.deepEqual(
      rival?.problems.map(({ line }) => line),
      [4],
    );
    assert.match(
      rival.problems[0]?.message ?? '',
      /gone, by the ledger.*formerly: gone.*DELETE FROM repave\.pipeline WHERE name = 'gone'/,
    );
    const former = await found(TENANT('acme', 'formerly: gone'));
    assert.deepEqual([former?.problems, former?.warnings], [[], []]);
    const idle = await found(
      TENANT('acme', 'formerly: never_there')
        .replace('target: shared', 'target: sales')
        .replace('column: day', 'column: sold_on')
        .replace('AS day', 'AS sold_on, 1 AS amount')
        .replace(", 'acme' AS tenant", '')
        .replace(/-- scope.*\n/, ''),
    );
    assert.deepEqual(idle?.problems, []);
    assert.ok(
      idle?.warnings.some(({ line, message }) => line === 4 && message.includes('has no pipeline never_there')),
      JSON.stringify(idle?.warnings),
    );
    assert.match(
      idle.warnings.find(({ line }) => line === 4)?.message ?? '',
      /nothing is carried over\. Either the name is misspelt\. Or it was carried over already/,
    );
    await database.sql('DELETE FROM repave.pipeline');
    await register('acme', 'public.shared', 'UTC', { tenant: 'acme' });
    const misspelt = await found(TENANT('acme', 'formerly: acmee'));
    assert.match(misspelt?.warnings[0]?.message ?? '', /no pipeline acmee.*Did you mean acme\?/);
    await database.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, run, attempt, fence) VALUES ('acme', '2024-02-29', 'filled', 'r', 1, 1)`,
    );
    const over = await found(TENANT('acme', 'formerly: before'));
    await database.sql('DELETE FROM repave.partition');
    assert.deepEqual([over?.problems, over?.warnings, over?.notes.map(({ line }) => line)], [[], [], [4]]);
    assert.match(over?.notes[0]?.message ?? '', /rows of acme and no pipeline before: that was carried over already/);
    await database.sql('DELETE FROM repave.pipeline');
    await register('acme', 'public.shared', 'UTC', { tenant: 'umbra' });
    const moved = await found(TENANT('acme'));
    assert.deepEqual([moved?.problems, moved?.warnings.map(({ line }) => line)], [[], [4]]);
    assert.match(
      moved?.warnings[0]?.message ?? '',
      /tenant = "umbra"; this file says tenant = "acme".*--only outdated/,
    );
  });

  describe('a pipeline that reads from another server', () => {
    const REMOTE = `-- repave
-- target: copied
-- partition: { column: day, by: day }
-- source: SHOP_URL
-- checks: [{ sum: { amount: SELECT sum(amount) FROM remote WHERE day = :date } }]
-- ready: SELECT EXISTS (SELECT FROM remote WHERE day >= :date)
SELECT day, amount, label AS n
FROM   remote
WHERE  day >= :date AND day < :end_date
`;
    before(() =>
      database.sql(
        'CREATE TABLE copied (day date NOT NULL, amount numeric(12, 2), n int); CREATE INDEX ON copied (day)',
      ),
    );

    it('is judged by both', async () => {
      const pipelines = await check({ 'copied.sql': REMOTE }, { SHOP_URL: other.url });
      const [{ problems, warnings, columns } = { problems: [], warnings: [], columns: [] }] = pipelines;
      assert.deepEqual(
        problems.map(({ line, type }) => [line, type]),
        [[7, 'SchemaMismatch']],
      );
      assert.match(problems[0]?.message ?? '', /"n" is of type integer but expression is of type text/);
      assert.deepEqual(
        warnings.map(({ line, message }) => [line, message.split('.')[0]]),
        [[7, '"amount": numeric(12,4) into numeric(12,2) rounds to 2 decimal places']],
      );
      assert.deepEqual(
        columns.map(({ type, cast }) => [type, cast]),
        [
          ['date', 'same'],
          ['numeric(12,4)', 'lossy'],
          ['text', undefined],
        ],
      );
      const wrong = REMOTE.replace('sum(amount) FROM', 'sum(nope) FROM')
        .replace('ready: SELECT EXISTS (SELECT', 'ready: SELECT (SELECT count(*)')
        .replace(', label AS n', ', nope');
      const far = await check({ 'copied.sql': wrong }, { SHOP_URL: other.url });
      assert.deepEqual(
        far[0]?.problems.map(({ line }) => line),
        [5, 6, 7, 7],
      );
      assert.doesNotMatch(JSON.stringify(far), new RegExp(new URL(other.url).password));
    });

    it('is checked as far as it can where its source is not named or does not answer, which is said', async () => {
      for (const url of [undefined, 'postgres://nobody:s3cret@127.0.0.1:1/none']) {
        const pipelines = await check(
          { 'copied.sql': REMOTE.replace('n\n', 'nope\n') },
          url === undefined ? {} : { SHOP_URL: url },
        );
        assert.deepEqual(
          pipelines[0]?.problems.map(({ line, message }) => [line, message.slice(0, 17)]),
          [[7, 'The column "nope"']],
        );
        assert.match(
          pipelines[0]?.unasked ?? '',
          url === undefined ? /SHOP_URL is not set/ : /source.*127\.0\.0\.1:1/i,
        );
        assert.doesNotMatch(JSON.stringify(pipelines), /s3cret/);
      }
    });
  });

  it('checks files alone where no database is named, and says so', async () => {
    const folder = project({
      'sales_summary.sql': SALES_SUMMARY,
      'broken.sql': SALES_SUMMARY.replace('start:', 'strat:').replace('target: sales_summary', 'target: another'),
    });
    const ended = await repave(folder, ['check'], {});
    assert.equal(ended.code, 1);
    assert.match(ended.stdout, /^✗ broken\n {2}✗ pipelines\/broken\.sql:4: unknown setting "strat".*\n/);
    assert.match(ended.stderr, /sales_summary: only its file was checked\. .*DATABASE_URL is not set/);
    writeFileSync(
      join(folder, 'pipelines/broken.sql'),
      SALES_SUMMARY.replace('target: sales_summary', 'target: another'),
    );
    assert.equal((await repave(folder, ['check'], {})).code, 0);
  });

  describe('where a server does not answer', () => {
    const AWAY = 'postgres://nobody:s3cret@127.0.0.1:1/none';
    const FAR = TENANT('acme', 'source: SHOP_URL');

    it('ends with 3, which a problem in a file goes before', async () => {
      const folder = project({ 'sales_summary.sql': SALES_SUMMARY });
      const away = await repave(folder, ['check', '--json'], { DATABASE_URL: AWAY });
      assert.equal(away.code, 3, away.stdout);
      const { ok, pipelines } = document<CheckDocument>(away);
      assert.equal(ok, false);
      const [{ problems, unreached, fileOnly } = {} as Partial<CheckedPipeline>] = pipelines;
      assert.deepEqual([problems, unreached, fileOnly], [[], true, true]);
      assert.match(away.stderr, /sales_summary: only its file was checked\. none at 127\.0\.0\.1:1: /);
      const broken = SALES_SUMMARY.replace('start:', 'strat:').replace('target: sales_summary', 'target: another');
      writeFileSync(join(folder, 'pipelines/broken.sql'), broken);
      const both = await repave(folder, ['check'], { DATABASE_URL: AWAY });
      assert.equal(both.code, 1);
      assert.match(both.stdout, /✗ broken\n[^]*unknown setting "strat"[^]*⚠ sales_summary\n/);
      assert.doesNotMatch(both.stdout + both.stderr + away.stderr, /s3cret/);
    });

    it('as well where its URL cannot be read', async () => {
      const ended = await repave(project({ 'sales_summary.sql': SALES_SUMMARY }), ['check'], {
        DATABASE_URL: 'nonsense',
      });
      assert.equal(ended.code, 3);
      assert.match(ended.stderr, /only its file was checked\. The database URL cannot be read/);
    });

    it('says of a source what was checked all the same: 3 where it is named, 0 where it is not', async () => {
      const folder = project({ 'far.sql': FAR });
      const away = await repave(folder, ['check'], { ...env, SHOP_URL: AWAY });
      assert.equal(away.code, 3, away.stdout);
      assert.match(
        away.stderr,
        /far: its queries were not checked where they run\. The source was not asked: .*127\.0\.0\.1:1/,
      );
      const unset = await repave(folder, ['check'], env);
      assert.equal(unset.code, 0);
      assert.match(unset.stderr, /far: its queries were not checked where they run\. .*SHOP_URL is not set/);
      assert.doesNotMatch(unset.stderr + away.stderr, /only its file/);
    });
  });

  it('is not ended by a pipeline that exits as it loads', async () => {
    const files = { 'exits.ts': 'process.exit(0);', 'sales_summary.sql': SALES_SUMMARY };
    const ended = await repave(project(files), ['check'], {});
    assert.equal(ended.code, 1);
    assert.match(ended.stdout, /✗ pipelines\/exits\.ts: it calls process\.exit while it loads[^]*✓ sales_summary\n/);
  });
});
