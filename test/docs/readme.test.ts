import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { createProgram } from '../../src/cli/program.js';
import { backfillWorkflowId } from '../../src/client.js';
import { FAILURES, type Retried, WORKFLOW_TYPES } from '../../src/contract.js';
import { readSqlPipeline } from '../../src/pipeline/read-sql-pipeline.js';
import { SETTING_NAMES } from '../../src/pipeline/settings.js';
import { parseBackfillInput, parsePartitionInput } from '../../src/plan/parse-input.js';

const root = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), 'utf8');
const readme = read('README.md');
const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'CHANGELOG.md',
  ...readdirSync(join(root, 'docs')).map((name) => `docs/${name}`),
].filter((path) => path.endsWith('.md'));

/** Variables that a worker sets for what it starts, and never reads. */
const HANDED_ON = ['REPAVE_NOTIFY_SIGNATURE'];
/** Settings that only `definePipeline` takes. */
const TYPESCRIPT_ALONE = ['columns', 'rows', 'stage'];

/** The fenced blocks of a page in one language. */
function blocks(text: string, language: string): string[] {
  return [...text.matchAll(new RegExp('^```' + language + '\\n([^]*?)^```', 'gm'))].map((match) => match[1] ?? '');
}

/** A table's rows below a heading, each as its cells, without the heading's row and the line below it. */
function tableBelow(text: string, heading: string): string[][] {
  const section = text.split(new RegExp(`^## ${heading}$`, 'm'))[1]?.split(/^## /m)[0] ?? '';
  const rows = section.split('\n').filter((line) => line.startsWith('|'));
  return rows.slice(2).map((row) =>
    row
      .slice(1, row.lastIndexOf('|'))
      .split(/(?<!\\)\|/)
      .map((cell) => cell.trim()),
  );
}

const code = (cell: string | undefined): string => /`([^`]+)`/.exec(cell ?? '')?.[1] ?? '';

describe('README', () => {
  it('lists every failure type of the contract, and how it is tried again', () => {
    const said: Record<Retried, string> = { no: 'no', counted: '`retry.attempts` times', world: 'until `giveUpAfter`' };
    const table = Object.fromEntries(
      tableBelow(readme, 'When it fails').map(([type, retried]) => [code(type), retried]),
    );
    const contract = Object.fromEntries(Object.entries(FAILURES).map(([type, retried]) => [type, said[retried]]));
    assert.deepEqual(table, contract);
    for (const [type, , advice] of tableBelow(readme, 'When it fails')) assert.ok((advice ?? '').length > 30, type);
  });

  it('lists every variable that is read, and no other', () => {
    const sources = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' }).filter((path) =>
      path.endsWith('.ts'),
    );
    const named = sources.flatMap(
      (path) => read(join('src', path)).match(/\bREPAVE_[A-Z_]*[A-Z]\b|\bDATABASE_URL\b/g) ?? [],
    );
    const listed = tableBelow(readme, 'Settings').map(([name]) => code(name));
    assert.deepEqual([...listed, ...HANDED_ON].sort(), [...new Set(named)].sort());
  });

  it('names for each promise the tests that prove it, which are there', () => {
    const rows = tableBelow(readme, 'What is promised');
    assert.ok(rows.length >= 7);
    for (const [promise, proof] of rows) {
      const tests = [...(proof ?? '').matchAll(/\]\((test\/[^)]+)\)/g)].map((match) => match[1] ?? '');
      assert.ok(tests.length > 0, `${promise} has no proof`);
      for (const test of tests) assert.ok(existsSync(join(root, test)), test);
    }
  });

  it('shows the example pipeline as it is', () => {
    const bare = (sql: string): string => sql.replace(/ {2,}#.*$/gm, '').trim();
    assert.equal(bare(blocks(readme, 'sql')[0] ?? ''), read('pipelines/sales_summary.sql').trim());
  });

  it('starts a backfill with input that is taken, under the id that the command would give it', () => {
    const line = /workflow start .*/.exec(readme)?.[0] ?? '';
    const input = parseBackfillInput(JSON.parse(/--input '([^']*)'/.exec(line)?.[1] ?? ''), []);
    assert.equal(/--workflow-id (\S+)/.exec(line)?.[1], backfillWorkflowId(input));
    assert.equal(/--type (\S+)/.exec(line)?.[1], WORKFLOW_TYPES.backfill);
    for (const block of blocks(readme, 'json')) parseBackfillInput(JSON.parse(block), []);
    parsePartitionInput(JSON.parse(/`(\{ "pipeline"[^`]*"key"[^`]*\})`/.exec(readme)?.[1] ?? ''), []);
  });

  it('shows every setting of a pipeline, with an example that is taken', async () => {
    const rows = tableBelow(readme, 'Every setting');
    const listed = rows.map(([name]) => code(name)).filter((name) => name !== '');
    assert.deepEqual([...listed].sort(), [...SETTING_NAMES, ...TYPESCRIPT_ALONE].sort());
    let taken = 0;
    for (const [name = '', example = ''] of rows) {
      const setting = code(example);
      if (example.includes('(TypeScript)')) {
        assert.ok(TYPESCRIPT_ALONE.includes(code(name)), name);
        continue;
      }
      assert.match(setting, /^\w+: /);
      if (name !== '') assert.ok(setting.startsWith(`${code(name)}:`), setting);
      const header = ['target: t', 'partition: { column: d, by: day }'].filter(
        (line) => line.split(':')[0] !== setting.split(':')[0],
      );
      const text = [
        '-- repave',
        ...[...header, setting].map((line) => `-- ${line}`),
        'SELECT :start AS d FROM sales',
      ].join('\n');
      await readSqlPipeline({ name: 't', path: '/pipelines/t.sql', shown: 'pipelines/t.sql' }, text);
      taken++;
    }
    assert.ok(taken > SETTING_NAMES.length);
  });

  it('has the two lines to run, of scripts that there are', () => {
    const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
    const shell = blocks(readme, 'sh');
    assert.ok(shell.includes('npm ci && npm run demo\n'));
    assert.ok(shell.includes('npm ci && npm test\n'));
    assert.match(read('.ci/run'), /npm ci && npm test/);
    for (const page of pages) {
      for (const [, script] of read(page).matchAll(/npm run ([\w:]+)/g))
        assert.ok(scripts[script ?? ''], `${page}: ${script}`);
    }
  });
});

describe('the docs', () => {
  it('name commands that there are, with flags that they take', () => {
    const program = createProgram();
    let seen = 0;
    for (const page of pages) {
      for (const line of read(page).matchAll(
        /(?:npx repave|^repave|`repave|bin\/repave\.js) ([a-z]+)((?: [^\s#`|]+)*)/gm,
      )) {
        const [, name, rest = ''] = line;
        if (name === 'temporal') continue;
        const named = program.commands.find((candidate) => candidate.name() === name);
        const [within] = rest.trim().split(' ');
        const command = named?.commands.length ? named.commands.find((one) => one.name() === within) : named;
        assert.ok(command ?? (named && !within), `${page}: repave ${name} ${within}`);
        if (!command) continue;
        seen++;
        for (const flag of rest.match(/--[a-z-]+/g) ?? []) {
          assert.ok(
            command.options.some((option) => option.long === flag),
            `${page}: repave ${name} ${flag}`,
          );
        }
      }
    }
    assert.ok(seen > 20);
  });

  it('link to what is there', () => {
    for (const page of pages) {
      for (const [, target = ''] of read(page).matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [path = '', anchor] = target.split('#');
        const file = path === '' ? page : join(dirname(page), path);
        assert.ok(existsSync(join(root, file)), `${page}: ${target}`);
        if (anchor === undefined) continue;
        const headings = [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
          heading
            .toLowerCase()
            .replace(/[^\w\s-]/g, '')
            .replace(/\s+/g, '-'),
        );
        assert.ok(headings.includes(anchor), `${page}: ${target}`);
      }
    }
  });

  it('show SQL pipelines that are taken', async () => {
    let taken = 0;
    for (const page of pages) {
      for (const block of blocks(read(page), 'sql').filter((text) => text.startsWith('-- repave'))) {
        await readSqlPipeline({ name: 't', path: '/pipelines/t.sql', shown: page }, block);
        taken++;
      }
    }
    assert.ok(taken >= 5);
  });

  it('list every setting of a pipeline', () => {
    const listed = tableBelow(read('docs/pipelines.md'), 'Settings').map(([name]) => code(name));
    assert.deepEqual([...listed].sort(), [...SETTING_NAMES, ...TYPESCRIPT_ALONE].sort());
  });

  it('list every field of the workflows’ inputs', () => {
    const contract = read('docs/contract.md');
    for (const [type, of] of [
      ['`backfill`', 'BackfillInput'],
      ['`partition`', 'PartitionInput'],
    ] as const) {
      const listed = tableBelow(contract, type).flatMap(([names = '']) => names.match(/(?<=`)\w+(?=`)/g) ?? []);
      const body = new RegExp(`interface ${of} \\{([^]*?)\\n\\}`).exec(read('src/contract/inputs.ts'))?.[1] ?? '';
      const fields = [...body.matchAll(/readonly (\w+)\??:/g)].map((match) => match[1] ?? '');
      assert.ok(fields.length > 0);
      assert.deepEqual([...listed].sort(), [...fields].sort(), of);
    }
  });

  it('show TypeScript that compiles', function () {
    this.timeout(180_000);
    const files = new Map<string, string>();
    for (const page of pages) {
      for (const [index, block] of blocks(read(page), 'ts').entries()) {
        files.set(join(root, `${page.replace(/\W/g, '_')}_${index}.ts`), block);
      }
    }
    assert.ok(files.size >= 3);
    const options: ts.CompilerOptions = {
      target: ts.ScriptTarget.ES2022,
      lib: ['lib.es2023.d.ts', 'lib.esnext.disposable.d.ts'],
      module: ts.ModuleKind.NodeNext,
      moduleResolution: ts.ModuleResolutionKind.NodeNext,
      types: ['node'],
      strict: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: true,
      noEmit: true,
      paths: { repave: [join(root, 'src/index.ts')], 'repave/client': [join(root, 'src/client.ts')] },
    };
    const disk = ts.createCompilerHost(options);
    const host: ts.CompilerHost = {
      ...disk,
      fileExists: (path) => files.has(path) || disk.fileExists(path),
      readFile: (path) => files.get(path) ?? disk.readFile(path),
      getSourceFile: (path, languageVersion) => {
        const text = files.get(path);
        return text === undefined
          ? disk.getSourceFile(path, languageVersion)
          : ts.createSourceFile(path, text, languageVersion);
      },
    };
    const program = ts.createProgram([...files.keys()], options, host);
    const problems = [...files.keys()].flatMap((path) => {
      const source = program.getSourceFile(path);
      return [...program.getSyntacticDiagnostics(source), ...program.getSemanticDiagnostics(source)].map(
        ({ messageText }) => `${path}: ${ts.flattenDiagnosticMessageText(messageText, ' ')}`,
      );
    });
    assert.deepEqual(problems, []);
  });
});
