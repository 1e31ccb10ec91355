import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createProgram } from '../../src/cli/program.js';
import { document, inShell, makeProject, repave, SALES_SUMMARY } from './repave.js';

/** Nothing listens there. */
const NOBODY = 'postgres://somebody:s3cret@127.0.0.1:1/nowhere';

describe('repave', function () {
  this.timeout(600_000);
  let project: string;
  before(() => (project = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY })));
  after(() => rmSync(project, { recursive: true, force: true }));

  it('says how, on standard output, with 0', async () => {
    const help = await repave(project, ['--help']);
    assert.equal(help.code, 0);
    assert.match(help.stdout, /^ {2}\$ repave plan .*\n {2}\$ repave backfill /);
    assert.match(help.stdout, /Exit codes: 0 done/);
    assert.equal(help.stderr, '');
  });

  it('says its version', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    assert.deepEqual(await repave(project, ['--version']), { code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('has the commands there are to be, each with examples that lead its help', () => {
    const commands = createProgram().commands.filter((command) => command.name() !== 'help');
    assert.deepEqual(
      commands.map((command) => command.name()).sort(),
      [
        ...[
          'adopt',
          'backfill',
          'cancel',
          'check',
          'concurrency',
          'demo',
          'deploy',
          'dev',
          'doctor',
          'history',
          'init',
          'migrate',
          'notify',
          'pipelines',
          'plan',
        ],
        ...[
          'pause',
          'prune',
          'resume',
          'retry',
          'schedule',
          'status',
          'stop',
          'temporal',
          'try',
          'verify',
          'watch',
          'worker',
        ],
      ].sort(),
    );
    const schedule = commands.find((command) => command.name() === 'schedule')?.commands ?? [];
    assert.deepEqual(
      schedule.map((command) => command.name()),
      ['add', 'list', 'pause', 'resume', 'remove'],
    );
    for (const command of [...commands, ...schedule]) {
      const name = command.parent?.name() === 'schedule' ? `schedule ${command.name()}` : command.name();
      let text = '';
      command.configureOutput({ writeOut: (part) => (text += part) }).outputHelp();
      assert.match(text, /^ {2}\$ .*repave /, name);
      assert.ok(text.includes(`repave ${name}`), name);
    }
  });

  it('loads Temporal’s client only for a command that uses it', () => {
    const script = `
      import { createRequire } from 'node:module';
      await import(${JSON.stringify(new URL('../../src/cli/program.ts', import.meta.url).href)});
      const loaded = Object.keys(createRequire(import.meta.url).cache);
      console.log(loaded.filter((path) => path.includes('@temporalio/client')).length, loaded.length > 0);
    `;
    const words = ['--import', import.meta.resolve('tsx'), '--input-type=module', '-e', script];
    assert.equal(execFileSync(process.execPath, words, { encoding: 'utf8', cwd: project }), '0 true\n');
  });

  const refused: readonly (readonly [string, readonly string[], RegExp])[] = [
    ['an unknown command, with the nearest', ['pln', 'sales_summary'], /unknown command 'pln'.*Did you mean plan/s],
    [
      'an unknown flag, with the nearest',
      ['plan', 'sales_summary', '--form', '1997-01-01'],
      /--form.*Did you mean --from/s,
    ],
    ['a missing argument', ['plan'], /missing required argument 'pipeline'/],
    ['a number that is none', ['backfill', 'sales_summary', '--last', 'ten'], /--last.*whole number/],
    ['an unknown pipeline, with the nearest', ['plan', 'sales_sumary', '--last', '1'], /sales_summary/],
    ['an unknown state', ['plan', 'sales_summary', '--only', 'broken'], /broken.*missing/s],
    [
      'a range and keys at once',
      ['plan', 'sales_summary', '1997-01-01', '--last', '3'],
      /keys as arguments and --last/,
    ],
    ['a day that does not exist', ['plan', 'sales_summary', '--from', '1997-02-30'], /1997-02-30/],
    ['a range the wrong way round', ['plan', 'sales_summary', '1997-02-03..1997-02-01'], /1997-02-03.*1997-02-01/s],
    ['no partitions named', ['backfill', 'sales_summary'], /no partitions are named/],
    [
      'a concurrency beyond the limit',
      ['backfill', 'sales_summary', '--last', '1', '--concurrency', '101'],
      /concurrency.*100/s,
    ],
    ['an id of nothing', ['backfill', 'sales_summary', '--last', '1', '--id', ''], /--id is empty/],
    ['grants for nobody', ['migrate', '--apply-grants'], /--role/],
    ['no database named', ['status'], /DATABASE_URL/],
  ];
  for (const [what, words, expected] of refused) {
    it(`refuses ${what}, with 2, and as JSON where asked`, async () => {
      const [plain, json] = await Promise.all([repave(project, words), repave(project, [...words, '--json'])]);
      assert.equal(plain.code, 2, plain.stderr);
      assert.equal(plain.stdout, '');
      assert.match(plain.stderr, expected);
      assert.equal(json.code, 2);
      const { version, error } = document<{ version: number; error: { type: string; message: string } }>(json);
      assert.equal(version, 1);
      assert.match(error.type, /^(InvalidInput|UnknownPipeline)$/);
      assert.match(error.message, expected);
    });
  }

  it('gives a bare call its help alone', async () => {
    const { code, stdout, stderr } = await repave(project, []);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /Exit codes: 0 done/);
    assert.doesNotMatch(stderr, /✗|outputHelp/);
    assert.equal((await repave(project, ['help', 'plan'])).code, 0);
  });

  it('gives its result and its exit code where nobody reads standard error', async () => {
    const { code, stdout } = await inShell(project, '"$@" 2> >(exec true)', ['check', 'sales_summary']);
    assert.deepEqual([code, stdout], [0, '✓ sales_summary\n']);
  });

  it('says in one line that standard output cannot be written', async () => {
    const { code, stderr } = await inShell(project, '"$@" > /dev/full', ['pipelines']);
    assert.equal(code, 2);
    assert.match(stderr, /^✗ Standard output cannot be written \(ENOSPC\).*\n$/);
  });

  it('tells a folder that cannot be used as the set-up’s fault', async () => {
    writeFileSync(join(project, 'file'), '');
    const ended = await repave(project, ['init', 'file/below']);
    assert.equal(ended.code, 2);
    assert.match(ended.stderr, /^✗ .*file\/below.* no folder \(ENOTDIR/);
  });

  it('refuses a log level there is none of', async () => {
    const ended = await repave(project, ['worker'], { REPAVE_LOG_LEVEL: 'loud', REPAVE_CONNECT_WAIT: '0' });
    assert.equal(ended.code, 2, ended.stderr);
    assert.match(ended.stderr, /REPAVE_LOG_LEVEL is "loud": expected debug, info/);
  });

  it('finds two files with one target, even by the files alone', async () => {
    writeFileSync(join(project, 'pipelines/twin.sql'), SALES_SUMMARY);
    try {
      const both = await repave(project, ['check']);
      assert.equal(both.code, 1, both.stderr);
      assert.match(both.stdout, /✗ sales_summary\n.*target of twin too.*\n✗ twin\n.*target of sales_summary too/);
      assert.match((await repave(project, ['check', 'twin'])).stdout, /^✗ twin\n.*target of sales_summary too/);
    } finally {
      rmSync(join(project, 'pipelines/twin.sql'));
    }
  });

  it('refuses a wrong key as such even where no database answers', async () => {
    const { code } = await repave(project, ['plan', 'sales_summary', '--from', '1997-02-30'], { DATABASE_URL: NOBODY });
    assert.equal(code, 2);
  });

  for (const words of [
    ['plan', 'sales_summary', '--last', '3'],
    ['status'],
    ['migrate'],
    ['history', 'sales_summary', '1997-01-01'],
  ]) {
    it(`ends \`${words.join(' ')}\` with 3 where the database cannot be reached, and keeps the password to itself`, async () => {
      const ended = await repave(project, [...words, '--json'], { DATABASE_URL: NOBODY });
      assert.equal(ended.code, 3, ended.stderr);
      assert.equal(document<{ error: { type: string } }>(ended).error.type, 'DatabaseUnavailable');
      assert.doesNotMatch(ended.stdout + ended.stderr, /s3cret/);
    });
  }

  it('ends with 3 where Temporal cannot be reached', async () => {
    const ended = await repave(project, ['backfill', 'sales_summary', '--last', '1', '--address', '127.0.0.1:1']);
    assert.equal(ended.code, 3, ended.stderr);
    assert.match(ended.stderr, /127\.0\.0\.1:1/);
  });

  it('lists pipelines by their files alone, and says which cannot be read', async () => {
    const { code, stdout } = await repave(project, ['pipelines']);
    assert.equal(code, 0);
    assert.equal(
      stdout,
      'pipeline\tkind\ttarget\tcolumn\tby\tzone\tstart\nsales_summary\tsql\tsales_summary\tsale_date\tday\tUTC\t1997-01-01\n',
    );
    writeFileSync(join(project, 'pipelines/broken.sql'), '-- repave\n-- target: nothing\nSELECT 1\n');
    try {
      const ended = await repave(project, ['pipelines', '--json']);
      assert.equal(ended.code, 1);
      const { pipelines, broken } = document<{ pipelines: { name: string }[]; broken: { name: string }[] }>(ended);
      assert.deepEqual(
        [pipelines.map(({ name }) => name), broken.map(({ name }) => name)],
        [['sales_summary'], ['broken']],
      );
    } finally {
      rmSync(join(project, 'pipelines/broken.sql'));
    }
  });

  it('lays a project’s first files, which are right, and overwrites none', async () => {
    const empty = makeProject();
    try {
      mkdirSync(join(empty, 'shop'));
      writeFileSync(join(empty, 'shop/.env.example'), 'MINE=1\n');
      const first = await repave(empty, ['init', 'shop', '--json']);
      assert.equal(first.code, 0);
      const { written, kept } = document<{ written: string[]; kept: string[] }>(first);
      assert.deepEqual([written, kept], [['pipelines/example.sql'], ['.env.example']]);
      assert.equal(readFileSync(join(empty, 'shop/.env.example'), 'utf8'), 'MINE=1\n');
      const again = document<{ written: string[] }>(await repave(empty, ['init', 'shop', '--json']));
      assert.deepEqual(again.written, []);
      assert.equal((await repave(join(empty, 'shop'), ['pipelines'])).code, 0);
      const said = await repave(empty, ['init', 'mart']);
      assert.match(said.stdout, /wrote mart\/pipelines\/example\.sql/);
      assert.match(said.stderr, /Next: `cd mart`/);
      await repave(join(empty, 'mart'), ['init', join(empty, 'absolute')]);
      assert.ok(existsSync(join(empty, 'absolute/pipelines/example.sql')));
    } finally {
      rmSync(empty, { recursive: true, force: true });
    }
  });
});
