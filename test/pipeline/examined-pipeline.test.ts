import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ExaminedPipeline } from '../../src/pipeline/examined-pipeline.js';
import { examinePipelines } from '../../src/pipeline/load.js';
import { examineSqlPipeline } from '../../src/pipeline/read-sql-pipeline.js';

const file = { name: 'daily', path: '/project/pipelines/daily.sql', shown: 'pipelines/daily.sql' };
const examine = (...lines: string[]): Promise<ExaminedPipeline> => examineSqlPipeline(file, lines.join('\n'));

/** `line: first words` of each problem. */
const found = ({ problems }: ExaminedPipeline): string[] =>
  problems.map(({ line, message }) => `${line}: ${message.split(/[.:] /)[0]}`);

describe('a SQL file with several faults', () => {
  it('is read to its end: each problem with its line, and the rest of it all the same', async () => {
    const examined = await examine(
      '-- repave',
      '-- target: mart.t',
      '-- partition: { column: d, by: day, zon: UTC, zone: Mars }',
      '-- tarjet: x',
      '-- timeout: soon',
      '-- batch: 5',
      '-- start: 1997-02-30',
      '-- checks:',
      '--   - rows: { min: one }',
      '--   - unique: [d]',
      '--   - sql: DELETE FROM t',
      '--   - not_null: [k]',
      '-- ready: SELECT :nothing',
      '',
      'SELECT a,',
      '       b -- of mart.t, not the target',
      'FROM   mart.t,',
      '       s JOIN mart.t AS again USING (a)',
      'FOR UPDATE',
    );
    assert.deepEqual(found(examined).sort(), [
      '11: sql',
      '13: ready',
      '15: the query locks rows (FOR UPDATE, FOR SHARE or the like)',
      '17: the query reads its own target mart.t, whose rows are deleted before it runs',
      '18: the query reads its own target mart.t, whose rows are deleted before it runs',
      '3: partition.zone is "Mars"',
      '3: unknown setting "zon"',
      '4: unknown setting "tarjet"',
      '5: timeout is "soon"',
      '7: start is "1997-02-30", which names a date that no calendar has (that month ends on 1997-02-28)',
      '9: checks[0].rows.min is "one"',
    ]);
    const { pipeline, lineOf } = examined;
    assert.ok(pipeline?.kind === 'sql');
    assert.deepEqual(pipeline.target, { schema: 'mart', table: 't' });
    assert.deepEqual(pipeline.partition, { column: 'd', by: 'day', zone: 'UTC' });
    assert.deepEqual([pipeline.batch, pipeline.timeoutMs, pipeline.start], [5, 3_600_000, undefined]);
    assert.deepEqual(pipeline.checks, [
      { kind: 'unique', columns: ['d'] },
      { kind: 'not_null', columns: ['k'] },
    ]);
    assert.deepEqual(
      [0, 1].map((index) => lineOf({ kind: 'check', index })),
      [10, 12],
    );
  });

  it('has no pipeline where its target, partition or query cannot be read, and says what else is wrong', async () => {
    const header = ['-- repave', '-- target: t', '-- partition: { column: d, by: day }'];
    const cases: [string[], string[]][] = [
      [['-- repave', '-- partition: { column: d, by: day }', 'SELECT :dat', 'FROM t'], ['2: target is missing', '3: unknown parameter :dat']],
      [['-- repave', '-- target: t', '-- partition: { by: day }', 'SELECT d', 'FROM t'], ['3: partition.column is missing']],
      [['-- repave', '-- target: [', 'SELECT FROM'], []],
      [[...header, 'SELECT :a,', ':b,', '$1 FROM t'], ['4: unknown parameter :a', '5: unknown parameter :b', '6: $1 is no parameter', '6: the query reads its own target t, whose rows are deleted before it runs']],
      [[...header, 'SELECT FROM WHERE'], ['4: the query is not SQL that PostgreSQL can parse']],
      [[...header, 'UPDATE t SET a = 1'], ['4: the query is an UPDATE']],
      [[...header, 'SELECT 1;', 'SELECT 2'], ['5: a second statement begins here']],
      [['SELECT 1'], ['1: no header']],
    ]; // prettier-ignore
    for (const [lines, expected] of cases) {
      const examined = await examine(...lines);
      assert.equal(examined.pipeline, undefined, lines.join('\n'));
      assert.ok(examined.problems.length > 0);
      if (expected.length > 0) assert.deepEqual(found(examined), expected);
    }
  });

  it('knows the lines of its settings and of its query', async () => {
    const { problems, lineOf } = await examine(
      '-- repave',
      '-- target: t',
      '-- partition:',
      '--   column: d',
      '--   by: day',
      '-- scope: { tenant: acme }',
      '',
      "WITH é AS (SELECT 'é' AS a, 2 AS b)",
      'SELECT DISTINCT',
      '  a,',
      '  é.*, now()',
      '    AS x,',
      "  'é🗓' || :key AS y",
      'FROM é',
    );
    assert.deepEqual(problems, []);
    assert.equal(lineOf({ kind: 'setting', path: ['target'] }), 2);
    assert.equal(lineOf({ kind: 'setting', path: ['partition', 'column'] }), 4);
    assert.equal(lineOf({ kind: 'setting', path: ['partition', 'zone'] }), 3);
    assert.equal(lineOf({ kind: 'setting', path: ['scope', 'tenant'] }), 6);
    assert.equal(lineOf({ kind: 'setting', path: ['database'] }), 2);
    assert.equal(lineOf({ kind: 'select' }), 9);
    // a, a, b, now, y
    const columns = ['a', 'a', 'b', 'x', 'y'].map((name, index) => lineOf({ kind: 'column', index, of: 5, name }));
    assert.deepEqual(columns, [10, 11, 11, 11, 13]);
    // A server counts characters, and é and 🗓 are one each.
    const text = "WITH é AS (SELECT 'é' AS a, 2 AS b)\nSELECT DISTINCT\n  a,\n  é.*, now()\n    AS x,\n  'é🗓' || ";
    assert.equal(lineOf({ kind: 'query', characters: [...text].length }), 13);
  });
});

describe('a TypeScript file with several faults', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'repave-examine-'));
    await mkdir(join(folder, 'pipelines'));
  });
  after(() => rm(folder, { recursive: true }));

  async function examineTypescript(text: string): Promise<ExaminedPipeline> {
    await writeFile(join(folder, 'pipelines/rates.ts'), text);
    const [examined] = await examinePipelines(join(folder, 'pipelines'));
    assert.ok(examined);
    return examined;
  }

  it('has each with the line of its setting', async () => {
    const examined = await examineTypescript(`import { definePipeline } from 'repave';
// target: this is a comment, and no setting
const timeout: string = 'soon';
export default definePipeline({
  target: 'rates', // timeout: neither
  partition: { column: 'day', by: 'day', zon: 'UTC' },
  'lookback': -1,
  timeout,
  checks: [
    { unique: ['day'] },
    { sql: 'DELETE FROM rates' },
    { sum: { rate: 'SELECT 1' } },
  ],
  batch: 2,
  ready: () => false,
  stage: false,
  async *rows({ key }) { yield { day: key }; },
});
`);
    assert.deepEqual(found(examined), [
      '6: unknown setting "zon"',
      '8: timeout is "soon"',
      '7: lookback is -1 (a number)',
      '11: sql',
      '12: sum compares with a query over the source of a SQL pipeline',
    ]);
    const { pipeline, lineOf } = examined;
    assert.ok(pipeline?.kind === 'typescript');
    assert.deepEqual([pipeline.batch, pipeline.stage, pipeline.lookback], [2, false, 0]);
    assert.equal(
      await pipeline.ready?.({
        key: '',
        window: { start: '', end: '', date: '', endDate: '' },
        signal: AbortSignal.abort(),
      }),
      false,
    );
    assert.equal(lineOf({ kind: 'setting', path: ['target'] }), 5);
    assert.equal(lineOf({ kind: 'setting', path: ['partition', 'column'] }), 6);
    assert.equal(lineOf({ kind: 'setting', path: ['scope'] }), 4);
    assert.equal(lineOf({ kind: 'select' }), 17);
  });

  it('refuses a value of a column that JavaScript has rounded', async () => {
    const examined = await examineTypescript(`import { definePipeline } from 'repave';
export default definePipeline({
  target: 'rates',
  partition: { column: 'day', by: 'day' },
  scope: { tenant: 9007199254740993, shop: 9007199254740991, plant: '0123' },
  rows: () => [],
});
`);
    assert.deepEqual(found(examined), ['5: scope.tenant is 9007199254740992 (a number)']);
    assert.match(examined.problems[0]?.message ?? '', /expected a number beyond 9007199254740991, .* as a text\.$/);
  });

  it('refuses a ready that is no function, and goes on without', async () => {
    const examined = await examineTypescript(`import { definePipeline } from 'repave';
export default definePipeline({
  target: 'rates', partition: { column: 'day', by: 'day' },
  ready: 'SELECT true' as never,
  rows: () => [],
});
`);
    assert.deepEqual(found(examined), ['4: ready is "SELECT true"']);
    assert.ok(examined.pipeline && !('ready' in examined.pipeline));
  });

  it('has each once, also where nothing is left of the settings', async () => {
    const examined = await examineTypescript(`import { definePipeline } from 'repave';
export default definePipeline({
  target: 'rates', partition: { column: 'day', by: 'day' },
  ready: 5 as never,
  rows: 5 as never,
});
`);
    assert.deepEqual(found(examined), ['5: rows is 5 (a number)', '4: ready is 5 (a number)']);
  });

  it('has no place for a setting where nothing calls definePipeline in it', async () => {
    await writeFile(
      join(folder, 'made.ts'),
      "import { definePipeline } from 'repave';\nexport const made = definePipeline({ target: 't', partition: { column: 'd', by: 'day' }, rows: () => [], batch: 0 });",
    );
    const examined = await examineTypescript("import { made } from '../made';\nexport default made;");
    assert.deepEqual(found(examined), ['undefined: batch is 0 (a number)']);
  });
});

describe('files that stand in each other’s way', () => {
  it('a former name that another file still has', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'repave-examine-'));
    const sql = '-- repave\n-- target: t\n-- partition: { column: d, by: day }\n';
    await writeFile(join(folder, 'old.sql'), `${sql}SELECT 1`);
    await writeFile(join(folder, 'new.sql'), `${sql}-- formerly: old\nSELECT 1`);
    await writeFile(join(folder, 'same.sql'), `${sql}-- batch: 2\n-- formerly: same\nSELECT 1`);
    const examined = await examinePipelines(folder);
    await rm(folder, { recursive: true });
    assert.deepEqual(examined.map(found), [
      ['4: `formerly` is old, which ' + `${folder.split('/').at(-1)}/old.sql still is`],
      [],
      ['5: `formerly` is its own name'],
    ]);
  });
});
