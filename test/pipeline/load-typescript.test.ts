import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { windowOf } from '../../src/calendar/window.js';
import { loadPipeline, loadPipelines } from '../../src/pipeline/load.js';

/** A pipeline whose rows are what `imports` call `value`. */
const pipeline = (imports: string, more = ''): string => `
${imports}
import { definePipeline, SourceError, type RowsContext } from 'repave';
${more}
export default definePipeline({
  target: 'target',
  partition: { column: 'day', by: 'day' },
  *rows({ key }: RowsContext) {
    if (!key) throw new SourceError('no key');
    yield { day: key, value };
  },
});
`;

describe('pipelines in TypeScript, loaded without a build', () => {
  let project: string;

  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(project, path)), { recursive: true });
    writeFileSync(join(project, path), text);
  };
  const valueOf = async (name: string): Promise<unknown> => {
    const loaded = await loadPipeline(join(project, 'pipelines'), name);
    assert.ok(loaded.kind === 'typescript');
    const key = '2024-02-29';
    for await (const row of loaded.rows({
      key,
      window: windowOf(loaded.partition, key),
      signal: new AbortController().signal,
    })) {
      return (row as { readonly value: unknown }).value;
    }
    return undefined;
  };

  before(() => {
    project = mkdtempSync(join(tmpdir(), 'repave-load-'));
    // A project of CommonJS, as one without a word about it is.
    write('package.json', '{}');
    write(
      'node_modules/esm-only/package.json',
      '{"name":"esm-only","version":"1.0.0","type":"module","exports":{"import":"./index.js"}}',
    );
    write(
      'node_modules/esm-only/index.js',
      "import { readFileSync } from 'node:fs';\nexport const value = await Promise.resolve(typeof readFileSync);\nexport const here = import.meta.url;\n",
    );
    write('node_modules/common/package.json', '{"name":"common","version":"1.0.0"}');
    write('node_modules/common/index.js', "module.exports = { value: 'from CommonJS', here: __filename };\n");
    write(
      'node_modules/@scope/typed/package.json',
      '{"name":"@scope/typed","version":"1.0.0","type":"module","exports":{"./deep":"./lib/deep.mjs"}}',
    );
    write('node_modules/@scope/typed/lib/deep.mjs', "export default 'from a path within a package';\n");
    write(
      'lib/helper.ts',
      "import table from './table.json' with { type: 'json' };\nexport enum Kind { One = 'one' }\nexport const value: string = `${Kind.One} ${table.name}`;\n",
    );
    write('lib/table.json', '{"name":"json"}');
    write('lib/index.ts', "export { value } from './helper.js';\n");
  });
  after(() => rmSync(project, { recursive: true }));

  const cases: readonly (readonly [what: string, file: string, text: string, value: unknown])[] = [
    [
      'a package that is ESM only, with a top-level await',
      'esm.ts',
      pipeline("import { value } from 'esm-only';"),
      'function',
    ],
    ['a package of CommonJS', 'common.ts', pipeline("import { value } from 'common';"), 'from CommonJS'],
    [
      'a path within a package of a scope',
      'scoped.ts',
      pipeline("import value from '@scope/typed/deep';"),
      'from a path within a package',
    ],
    [
      'a file outside pipelines/, with an enum, which imports JSON',
      'outside.ts',
      pipeline("import { value } from '../lib/helper.js';"),
      'one json',
    ],
    [
      'the same by its folder',
      'mart/by_folder.ts',
      pipeline("import { value } from '../../lib/index.js';"),
      'one json',
    ],
    ['the same without an ending', 'bare.ts', pipeline("import { value } from '../lib/helper';"), 'one json'],
    [
      'a file .mts',
      'module.mts',
      pipeline("import { value } from 'esm-only';", 'await Promise.resolve();'),
      'function',
    ],
    [
      'a file .mjs',
      'script.mjs',
      pipeline("import { value } from 'esm-only';").replace(/, type RowsContext|: RowsContext/g, ''),
      'function',
    ],
    [
      'types alone',
      'types.ts',
      pipeline("import type { Row } from 'repave';", "const value = 'typed' satisfies Row['x'];"),
      'typed',
    ],
    [
      'what is imported only when it is needed',
      'lazy.ts',
      pipeline('', "const { value } = await import('esm-only');"),
      'function',
    ],
  ];
  for (const [what, file, text, value] of cases) {
    it(`may import ${what}`, async () => {
      write(`pipelines/${file}`, text);
      assert.equal(await valueOf(file.replace(/\.\w+$/, '')), value);
    });
  }

  it('are read anew each time, with what they import', async () => {
    write('pipelines/again.ts', pipeline("import { value } from '../lib/again.js';"));
    for (const text of ['first', 'second']) {
      write('lib/again.ts', `export const value = '${text}';\n`);
      assert.equal(await valueOf('again'), text);
    }
  });

  it('are not all lost where one throws, or imports what is not there', async () => {
    write('pipelines/throws.ts', "throw new Error('on loading');\n");
    write('pipelines/lacks.ts', pipeline("import { value } from 'not-installed';"));
    const { pipelines, broken } = await loadPipelines(join(project, 'pipelines'));
    assert.deepEqual([...broken.keys()].sort(), ['lacks', 'throws']);
    assert.match(broken.get('lacks')?.message ?? '', /not-installed/);
    assert.ok(pipelines.has('esm'));
  });

  describe('with code that would take the process down as it loads', () => {
    /** Loads a file in a process of its own, which has nothing else to wait for. */
    const loadedAlone = (
      text: string,
      limitMs: number,
    ): { readonly code: number | null; readonly problems: unknown } => {
      write('alone/pipelines/alone.ts', text);
      const reader = new URL('../../src/pipeline/read-typescript-pipeline.ts', import.meta.url).href;
      const path = join(project, 'alone/pipelines/alone.ts');
      const program = `import { examineTypescriptPipeline } from ${JSON.stringify(reader)};
        const file = { name: 'alone', path: ${JSON.stringify(path)}, shown: 'pipelines/alone.ts' };
        const { problems } = await examineTypescriptPipeline(file, ${limitMs});
        process.stdout.write(JSON.stringify(problems), () => process.exit(7));`;
      const { status, stdout } = spawnSync(
        process.execPath,
        ['--import', 'tsx', '--input-type=module', '--eval', program],
        { cwd: fileURLToPath(new URL('../..', import.meta.url)), encoding: 'utf8', timeout: 150_000 },
      );
      return { code: status, problems: stdout === '' ? undefined : JSON.parse(stdout) };
    };
    const refusals: readonly (readonly [what: string, text: string, message: RegExp])[] = [
      ['awaits what never comes', 'await new Promise(() => {});', /^it does not finish loading within 0\.3 s: /],
      [
        'the same beside a timer',
        'setInterval(() => {}, 50);\nawait new Promise(() => {});',
        /does not finish loading/,
      ],
      ['calls process.exit', 'process.exit(0);', /^it calls process\.exit while it loads: /],
      [
        'calls it behind an await',
        "import { exit } from 'node:process';\nawait Promise.resolve();\nexit(0);",
        /^it calls process\.exit while it loads: /,
      ],
    ];
    for (const [what, text, message] of refusals) {
      it(`that ${what}: it alone is refused, and the process goes on as it was`, () => {
        // Only what never ends is to meet the limit.
        const { code, problems } = loadedAlone(`${text}\nexport default 1;\n`, text.includes('exit') ? 120_000 : 300);
        assert.equal(code, 7);
        const [problem, ...more] = problems as { readonly message: string }[];
        assert.match(problem?.message ?? '', message);
        assert.deepEqual(more, []);
      });
    }

    it('keeps no other from being read', async () => {
      write('beside/pipelines/a.ts', 'process.exit(0);\nexport default 1;\n');
      write('beside/pipelines/b.ts', pipeline('', "const value = 'read';"));
      const before = Object.getOwnPropertyDescriptor(process, 'exit');
      const { pipelines, broken } = await loadPipelines(join(project, 'beside/pipelines'));
      assert.deepEqual([...pipelines.keys()], ['b']);
      const { type, message } = broken.get('a') ?? {};
      assert.equal(type, 'InvalidPipeline');
      assert.match(message ?? '', /^pipelines\/a\.ts: it calls process\.exit while it loads/);
      assert.deepEqual(Object.getOwnPropertyDescriptor(process, 'exit'), before);
    });
  });
});
