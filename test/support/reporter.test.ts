import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

describe("the test run's last line", () => {
  let folder: string;
  before(() => (folder = mkdtempSync(join(tmpdir(), 'repave-reporter-'))));
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const mode of ['serial', 'parallel'] as const) {
    const flags = mode === 'parallel' ? ['--parallel', '--jobs', '2'] : [];

    it(`counts what passed, failed and was skipped (${mode})`, () => {
      const { lastLine, code } = run(flags, {
        'one.cjs': "it('passes', () => {}); it('fails', () => { throw new Error('no'); }); it.skip('waits', () => {});",
        'two.cjs': "it('passes too', () => {});",
      });
      assert.equal(lastLine, '2 passed, 1 failed, 1 skipped');
      assert.notEqual(code, 0);
    });

    it(`counts a hook that fails as failed (${mode})`, () => {
      const { lastLine, code } = run(flags, {
        'one.cjs':
          "describe('group', () => { before(() => { throw new Error('no'); }); it('never runs', () => {}); });",
        'two.cjs': "it('passes', () => {});",
      });
      assert.equal(lastLine, '1 passed, 1 failed');
      assert.notEqual(code, 0);
    });

    it(`says 0 failed where all is well (${mode})`, () => {
      const { lastLine, code } = run(flags, { 'one.cjs': "it('passes', () => {});" });
      assert.equal(lastLine, '1 passed, 0 failed');
      assert.equal(code, 0);
    });
  }

  it('counts a global set-up that fails as failed', () => {
    writeFileSync(join(folder, 'setup.cjs'), "exports.mochaGlobalSetup = () => { throw new Error('no server'); };");
    const { lastLine, code } = run(['--require', join(folder, 'setup.cjs')], {
      'one.cjs': "it('never runs', () => {});",
    });
    assert.equal(lastLine, '0 passed, 1 failed');
    assert.notEqual(code, 0);
  });

  function run(
    flags: readonly string[],
    files: Readonly<Record<string, string>>,
  ): { lastLine: string; code: number | null } {
    const paths = Object.entries(files).map(([name, text]) => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    });
    const reporter = join(ROOT, 'test', 'support', 'reporter.cjs');
    const mocha = join(ROOT, 'node_modules', 'mocha', 'bin', 'mocha.js');
    // Mocha hands its own state to its children by the environment.
    const env = { PATH: process.env.PATH, HOME: folder };
    const ended = spawnSync(process.execPath, [mocha, '--no-config', '--reporter', reporter, ...flags, ...paths], {
      cwd: ROOT,
      env,
      encoding: 'utf8',
    });
    return { lastLine: ended.stdout.trimEnd().split('\n').at(-1) ?? '', code: ended.status };
  }
});
