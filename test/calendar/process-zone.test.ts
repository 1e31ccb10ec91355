import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const suites = ['windows', 'range', 'properties'].map((name) => `test/calendar/${name}.test.ts`);

describe('calendar: the time zone of the process changes nothing', () => {
  for (const zone of ['Asia/Kolkata', 'America/New_York', 'Pacific/Apia']) {
    it(`under TZ=${zone}`, () => {
      const mocha = ['node_modules/mocha/bin/mocha.js', '--no-config', '--import=tsx', '--timeout', '120000'];
      const run = spawnSync(process.execPath, [...mocha, '--reporter', 'dot', ...suites], {
        cwd: root,
        env: { ...process.env, TZ: zone },
        encoding: 'utf8',
      });
      assert.equal(run.status, 0, run.stdout + run.stderr);
      assert.match(run.stdout, /\d{2,} passing/);
    }).timeout(180_000);
  }
});
