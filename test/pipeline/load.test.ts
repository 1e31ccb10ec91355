import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Failure } from '../../src/failure.js';
import { loadPipeline, loadPipelines } from '../../src/pipeline/load.js';
import type { Pipeline, TypeScriptPipeline } from '../../src/pipeline/pipeline.js';

const SQL = '-- repave\n-- target: t\n-- partition: { column: d, by: day }\nSELECT 1';
const TS = `import { definePipeline } from 'repave';
export default definePipeline({
  target: 't',
  partition: { column: 'd', by: 'day' },
  *rows({ key }) { yield { d: key }; },
});
`;

describe('loading pipelines', () => {
  let project: string;
  let folder: string;

  beforeEach(async () => {
    project = await mkdtemp(join(tmpdir(), 'repave-load-'));
    folder = join(project, 'pipelines');
    await mkdir(folder);
  });
  afterEach(() => rm(project, { recursive: true }));

  async function write(path: string, content: string): Promise<void> {
    await mkdir(dirname(join(project, path)), { recursive: true });
    await writeFile(join(project, path), content);
  }

  it('names them by their path, in order, and passes over what is no pipeline file', async () => {
    await write('pipelines/sales.sql', SQL);
    await write('pipelines/mart/by_day/orders_2.sql', SQL);
    await write('pipelines/mart/rates.ts', TS);
    await write('pipelines/plain.js', TS);
    await write('pipelines/module.mjs', TS);
    for (const other of ['README.md', 'types.d.ts', '.hidden.sql', '.git/x.sql', 'node_modules/x/y.ts']) {
      await write(`pipelines/${other}`, 'nonsense');
    }
    const { pipelines, broken } = await loadPipelines(folder);
    assert.deepEqual([...broken], []);
    assert.deepEqual([...pipelines.keys()], ['mart/by_day/orders_2', 'mart/rates', 'module', 'plain', 'sales']);
    for (const [name, pipeline] of pipelines) assert.equal(pipeline.name, name);
    assert.equal(pipelines.get('mart/rates')?.file, join(folder, 'mart/rates.ts'));
  });

  it('says what is wrong with a broken file, and reads the others', async () => {
    await write('pipelines/fine.sql', SQL);
    await write('pipelines/broken/bad.sql', SQL.replace('target: t', 'tarjet: t'));
    await write('pipelines/Upper-Case.sql', SQL);
    await mkdir(join(folder, 'folder.sql'));
    await writeFile(join(folder, 'latin1.sql'), Buffer.from(`${SQL}, 'é'`, 'latin1'));
    await write('pipelines/nul.sql', `${SQL}\0; DROP TABLE t`);
    await write('pipelines/twice.sql', SQL);
    await write('pipelines/twice.ts', TS);
    await write(`pipelines/${'z'.repeat(201)}.sql`, SQL);
    await write('pipelines/syntax.ts', 'const fine = 1;\nexport default {{{');
    await write('shared.ts', 'export const x = 1;\n\nconst y = ((;\n');
    await write('pipelines/imports.ts', "import { x } from '../shared.js'; export default x;");
    await write('pipelines/throws.ts', "throw new Error('at load\\nand more')");
    await write('pipelines/missing.ts', "import { x } from './no_such_file.js'; export default x;");
    await write('pipelines/nothing.ts', 'export const helper = 1;');
    await write('pipelines/plain_object.ts', "export default { target: 't' };");
    await write('pipelines/settings.ts', TS.replace("target: 't'", "target: 5, timout: '1h'"));
    await write('pipelines/no_rows.ts', TS.replace('*rows({ key })', '*row({ key })'));
    const { pipelines, broken } = await loadPipelines(folder);
    assert.deepEqual([...pipelines.keys()], ['fine']);
    const messages = Object.fromEntries([...broken].map(([name, { message }]) => [name, message]));
    for (const failure of broken.values()) assert.equal(failure.type, 'InvalidPipeline');
    const expected: Record<string, RegExp> = {
      'Upper-Case': /^pipelines\/Upper-Case\.sql: "Upper-Case" is no pipeline's name: expected lower-case letters/,
      'broken/bad': /^pipelines\/broken\/bad\.sql:2: /,
      folder: /^pipelines\/folder\.sql: it cannot be read \(EISDIR\)\.$/,
      imports: /^pipelines\/imports\.ts: it does not load: ParseError: .*, in \.\.\/shared\.ts:3$/,
      latin1: /^pipelines\/latin1\.sql: it is no text: expected UTF-8 without NUL/,
      missing: /^pipelines\/missing\.ts: it does not load: .*no_such_file/,
      no_rows: /^pipelines\/no_rows\.ts:5: unknown setting "row"\. Did you mean rows\?.* \(1 more after that\)$/,
      nothing: /^pipelines\/nothing\.ts: its default export is no pipeline: expected `export default definePipeline/,
      nul: /^pipelines\/nul\.sql: it is no text/,
      plain_object: /^pipelines\/plain_object\.ts: its default export is no pipeline/,
      settings:
        /^pipelines\/settings\.ts:3: unknown setting "timout"\. Did you mean timeout\?.* \(1 more after that\)$/,
      syntax: /^pipelines\/syntax\.ts:2: it does not load: ParseError: /,
      throws: /^pipelines\/throws\.ts: it does not load: at load$/,
      twice: /^pipelines\/twice\.sql: pipelines\/twice\.ts has the same name: keep one of the two\.$/,
      ['z'.repeat(201)]: /is no pipeline's name: expected .*, at most 200 characters\.$/,
    };
    assert.deepEqual(Object.keys(messages), Object.keys(expected));
    for (const [name, message] of Object.entries(expected)) assert.match(messages[name] ?? '', message);
  });

  it('loads one by its name, and knows near names', async () => {
    await write('pipelines/mart/sales_summary.sql', SQL);
    await write('pipelines/bad.sql', 'SELECT 1');
    assert.equal((await loadPipeline(folder, 'mart/sales_summary')).name, 'mart/sales_summary');
    const unknown = async (name: string, message: RegExp): Promise<void> => {
      const error: unknown = await loadPipeline(folder, name).catch((thrown: unknown) => thrown);
      assert.ok(error instanceof Failure);
      assert.equal(error.type, 'UnknownPipeline');
      assert.match(error.message, message);
    };
    await unknown('mart/sales-sumary', /Did you mean mart\/sales_summary\?$/);
    await unknown('weather', /There are: bad, mart\/sales_summary\.$/);
    await unknown('../pipelines/bad', /no pipeline "\.\.\/pipelines\/bad"/);
    await unknown('__proto__', /no pipeline/);
    await assert.rejects(loadPipeline(folder, 'bad'), { type: 'InvalidPipeline' });
  });

  it('says how to get a folder where there is none', async () => {
    await assert.rejects(loadPipelines(join(project, 'nowhere')), (error: Failure) => {
      assert.equal(error.type, 'InvalidInput');
      assert.match(error.message, /nowhere cannot be read \(ENOENT\).*REPAVE_PROJECT.*repave init/);
      return true;
    });
    const { pipelines } = await loadPipelines(folder);
    assert.equal(pipelines.size, 0);
  });

  describe('TypeScript', () => {
    const rates = async (): Promise<TypeScriptPipeline> => {
      const pipeline: Pipeline = await loadPipeline(folder, 'rates');
      assert.ok(pipeline.kind === 'typescript');
      return pipeline;
    };
    const rowsOf = async (pipeline: TypeScriptPipeline): Promise<unknown[]> => {
      const window = { start: '', end: '', date: '', endDate: '' };
      const rows: unknown[] = [];
      for await (const row of pipeline.rows({ key: '2024-02-29', window, signal: AbortSignal.abort() })) rows.push(row);
      return rows;
    };

    it('reads settings with their defaults, columns, and rows that see `this`', async () => {
      await write(
        'pipelines/rates.ts',
        `import { definePipeline, type Row } from 'repave';
        import { MAX_KEYS } from 'repave/contract';
        export default definePipeline({
          target: 'mart.rates', partition: { column: 'day', by: 'month', zone: 'Europe/Berlin' }, start: '1999-01',
          columns: ['day', 'rate'], checks: [{ unique: ['day'] }], retry: { attempts: 7 }, timeout: '15m', version: 3,
          rows: async function* (this: { target: string }, { key }): AsyncGenerator<Row> { yield { day: key, rate: this.target + MAX_KEYS }; },
        });`,
      );
      const pipeline = await rates();
      assert.deepEqual(pipeline, {
        rows: pipeline.rows,
        fingerprint: pipeline.fingerprint,
        file: join(folder, 'rates.ts'),
        kind: 'typescript',
        name: 'rates',
        target: { schema: 'mart', table: 'rates' },
        partition: { column: 'day', by: 'month', zone: 'Europe/Berlin' },
        start: '1999-01',
        columns: ['day', 'rate'],
        checks: [{ kind: 'unique', columns: ['day'] }],
        concurrency: undefined,
        retry: { attempts: 7, giveUpAfterMs: 86_400_000 },
        timeoutMs: 900_000,
        lookback: 0,
        version: '3',
        allowEmpty: true,
        database: 'DATABASE_URL',
      });
      assert.deepEqual(await rowsOf(pipeline), [{ day: '2024-02-29', rate: 'mart.rates10000' }]);
    });

    it('runs the text that its fingerprint was taken of, also of what it imports', async () => {
      const withLibrary = TS.replace('yield { d: key }', 'yield { d: key, v: value() }');
      await write('pipelines/rates.ts', `import { value } from '../lib/value.js';\n${withLibrary}`);
      await write('lib/value.ts', "import data from './data.json';\nexport const value = (): number => data.value;\n");
      await write('lib/data.json', '{ "value": 1 }');
      const first = await rates();
      assert.deepEqual(await rowsOf(first), [{ d: '2024-02-29', v: 1 }]);
      await write('lib/data.json', '{ "value": 2 }');
      const second = await rates();
      assert.deepEqual(await rowsOf(second), [{ d: '2024-02-29', v: 2 }]);
      assert.notEqual(second.fingerprint, first.fingerprint);
      await write('lib/unrelated.ts', 'export {};');
      assert.equal((await rates()).fingerprint, second.fingerprint);
    });

    it('has a fingerprint that a project carries elsewhere, and that `version` stands for', async () => {
      await write('pipelines/rates.ts', TS);
      const { fingerprint } = await rates();
      await write('elsewhere/rates.ts', TS);
      assert.equal((await loadPipeline(join(project, 'elsewhere'), 'rates')).fingerprint, fingerprint);
      const versioned = TS.replace("target: 't',", "target: 't', version: '1',");
      await write('pipelines/rates.ts', versioned);
      const one = (await rates()).fingerprint;
      await write('pipelines/rates.ts', `// a comment\n${versioned}`);
      assert.equal((await rates()).fingerprint, one);
      assert.notEqual(one, fingerprint);
    });

    it('loads modules that import each other', async () => {
      await write('pipelines/rates.ts', `import { a } from '../lib/a';\n${TS.replace('d: key', 'd: a(3)')}`);
      await write(
        'lib/a.ts',
        "import { b } from './b';\nexport const a = (n: number): string => (n > 0 ? b(n) : 'end');",
      );
      await write('lib/b.ts', "import { a } from './a';\nexport const b = (n: number): string => a(n - 1);");
      assert.deepEqual(await rowsOf(await rates()), [{ d: 'end' }]);
    });
  });
});
