import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { newestFinished, previousKey } from '../../src/calendar/range.js';
import { createOutput } from '../../src/cli/output.js';
import { tellStale } from '../../src/cli/stale.js';
import { loadSettings } from '../../src/settings.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs } from '../support/fill.js';
import { document, makeProject, repave } from './repave.js';

interface StaleDocument {
  readonly behind: number;
  readonly pipelines: readonly {
    readonly name: string;
    readonly newest: string | null;
    readonly behindSeconds?: number;
  }[];
}

describe('repave status --stale', () => {
  let project: string;
  let test: TestDatabase;

  before(async () => {
    project = makeProject({ 'pipelines/.keep': '' });
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
    rmSync(project, { recursive: true, force: true });
  });
  beforeEach(async () => {
    now = new Date();
    await test.sql('TRUNCATE repave.pipeline, repave.partition');
  });

  /** One for a whole test, in which an hour or a day may end. */
  let now: Date;
  const today = { by: 'day', zone: 'UTC' } as const;
  /** The key of the day that is so many finished days ago: 0 is the newest finished one. */
  function day(ago: number, grid = today): string {
    let key = newestFinished(grid, now.toISOString());
    for (let i = 0; i < ago; i++) key = previousKey(grid, key);
    return key;
  }

  async function pipeline(name: string, by = 'day', start: string | null = null, zone = 'UTC'): Promise<void> {
    await test.sql(
      `INSERT INTO repave.pipeline (name, target, partition_column, by, zone, fingerprint, start) VALUES ($1, 'public.' || $1, 'day', $2, $3, 'now', $4)`,
      [name, by, zone, start],
    );
  }

  /** A row of the ledger, as fills, failures and verify leave them. */
  async function holds(name: string, key: string, state: 'filled' | 'outdated' | 'failed' | 'missing' | 'unfinished') {
    await test.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence) VALUES ($1, $2, $3, 1, $4, $5, 'run', 1, 1)`,
      [
        name,
        key,
        state === 'failed' ? 'failed' : 'filled',
        { filled: 'now', outdated: 'older', failed: 'now', missing: null, unfinished: 'now unfinished' }[state],
        state === 'missing' ? null : now,
      ],
    );
  }

  async function said(stale: string, what?: string) {
    const written = { stdout: '', stderr: '' };
    const stream = (name: keyof typeof written) => ({ write: (text: string) => (written[name] += text) });
    const settings = loadSettings({ DATABASE_URL: test.url }, project);
    const streams = [stream('stdout'), stream('stderr')] as const;
    const code = await tellStale(settings, createOutput({}, {}, ...streams), what, stale, now);
    return { code, ...written };
  }

  it('says which are behind and by how much, worked out from the end of the first day behind the newest filled one', async () => {
    await pipeline('fresh');
    await holds('fresh', day(0), 'filled');
    await pipeline('older');
    await holds('older', day(0), 'outdated');
    await pipeline('late');
    await holds('late', day(9), 'filled');
    const { code, stdout } = await said('3d');
    assert.equal(code, 1);
    assert.match(
      stdout,
      new RegExp(
        `^✗ late is 5 d( \\d+ h)? behind: ${day(8)} is not filled, and ended 8 d( \\d+ h)? ago; the newest one that is filled is ${day(9)}\n$`,
      ),
    );
    assert.deepEqual(await said('3d', 'older'), {
      code: 0,
      stdout: '✓ 1 pipeline: none is more than 3d behind\n',
      stderr: '',
    });
    assert.equal((await said('9d')).code, 0);
    assert.equal((await said('1s')).code, 1);
    for (const name of ['fresh', 'older']) assert.equal((await said('1s', name)).code, 0, name);
  });

  it('counts no failed day, none that is missing, and none that was filled before it was over', async () => {
    for (const state of ['failed', 'missing', 'unfinished'] as const) {
      await pipeline(state);
      await holds(state, day(0), state);
      await holds(state, day(5), 'filled');
      assert.equal((await said('2d', state)).code, 1, state);
      assert.equal((await said('5d', state)).code, 0, state);
    }
  });

  it('goes by the first day where nothing is filled, and by nothing where there is none', async () => {
    await pipeline('new', 'day', day(0));
    await pipeline('empty', 'day', day(4));
    await pipeline('moved', 'day', day(0));
    await holds('moved', day(300), 'filled');
    assert.equal((await said('2d', 'new')).code, 0);
    assert.equal((await said('2d', 'moved')).code, 0, 'what was filled before the start says nothing');
    assert.match(
      (await said('2d')).stdout,
      /^✗ empty is .* behind: nothing of it is filled, and its first partition ended 4 d( \d+ h)? ago\n$/,
    );
    await pipeline('endless');
    const endless = await said('2d', 'endless');
    assert.deepEqual(endless, {
      code: 0,
      stdout: '',
      stderr: 'endless has no start, and nothing of it is filled: nothing to go by.\n',
    });
  });

  it('knows hours, months and local days, and passes over keys of a calendar that there was', async () => {
    await pipeline('hours', 'hour');
    await holds('hours', newestFinished({ by: 'hour', zone: 'UTC' }, now.toISOString()), 'filled');
    assert.equal((await said('1s', 'hours')).code, 0);
    await pipeline('months', 'month', null, 'America/New_York');
    const month = newestFinished({ by: 'month', zone: 'America/New_York' }, now.toISOString());
    await holds('months', month, 'filled');
    for (let ago = 0; ago < 120; ago++) await holds('months', day(ago), 'filled');
    // Which is up to date, however long ago its newest month ended.
    assert.equal((await said('1s', 'months')).code, 0);
    await test.sql('DELETE FROM repave.partition WHERE pipeline = $1 AND key = $2', ['months', month]);
    await holds('months', previousKey({ by: 'month', zone: 'America/New_York' }, month), 'filled');
    const { code, stdout } = await said('1s', 'months');
    assert.equal(code, 1);
    assert.ok(stdout.includes(`behind: ${month} is not filled, and ended`), stdout);
  });

  it('names files that no worker has registered, which may be behind as far as anybody knows', async () => {
    const file = join(project, 'pipelines', 'unserved.sql');
    writeFileSync(
      file,
      '-- repave\n-- target: unserved\n-- partition: { column: day, by: day }\nSELECT :date AS day\n',
    );
    try {
      const { code, stdout } = await said('1s');
      assert.equal(code, 1);
      assert.match(stdout, /^✗ 1 pipeline of this project that no worker has registered: unserved\. .*`repave check`/);
      await pipeline('unserved');
      assert.equal((await said('1s')).code, 0);
    } finally {
      rmSync(file);
    }
  });

  it('refuses what is no duration, and a pipeline that nobody has', async () => {
    assert.match(
      (await failsAs(said('26'), 'InvalidInput')).message,
      /--stale is "26": it takes a duration such as 90s/,
    );
    assert.match((await failsAs(said('26h', 'nobody'), 'InvalidInput')).message, /knows no pipeline "nobody"/);
  });

  it('answers at once while Temporal is down, and with JSON', async () => {
    await pipeline('late', 'day', day(9));
    const env = { DATABASE_URL: test.url, TEMPORAL_ADDRESS: '127.0.0.1:9' };
    const ended = await repave(project, ['status', '--stale', '26h', '--json'], env);
    assert.equal(ended.code, 1, ended.stderr);
    const { behind, pipelines } = document<StaleDocument>(ended);
    assert.equal(behind, 1);
    assert.deepEqual([pipelines[0]?.name, pipelines[0]?.newest], ['late', null]);
    assert.ok((pipelines[0]?.behindSeconds ?? 0) > 7 * 86_400);
  });
});
