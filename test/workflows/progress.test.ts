import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { Progress, Steered } from '../../src/contract.js';
import { currentDetails } from '../../src/workflows/details.js';
import { Pace } from '../../src/workflows/pace.js';
import { Harness } from './harness.js';
import { days, gate, scripted, until } from './scripted.js';

const BASE: Progress = {
  pipeline: 'sales',
  first: '2024-01-01',
  last: '2024-01-09',
  total: 9,
  filled: 4,
  failed: 1,
  skipped: 0,
  rows: 40,
  running: [{ keys: '2024-01-06', since: '2024-02-01T00:00:00.000Z' }],
  failures: [{ key: '2024-01-02', type: 'CheckFailed', message: 'none | at\nall' }],
  phase: 'filling',
  concurrency: 3,
};

describe('current details', () => {
  it('are a table, in which nothing of a message ends a cell', () => {
    const details = currentDetails(BASE);
    assert.ok(details.includes('**sales**, 2024-01-01 to 2024-01-09 (filling)'), details);
    assert.ok(details.includes('| 9 | 4 | 1 | 0 | 4 | 40 | 3 | not yet known | not yet known |'), details);
    assert.ok(details.includes('| 2024-01-02 | CheckFailed | none \\| at all |'), details);
    const paused = { by: 'canary', reason: 'a|b', since: '2024-02-01T00:00:00.000Z' } as const;
    const more = currentDetails({ ...BASE, phase: 'paused', paused, perMinute: 2, secondsLeft: 120, busy: 2 });
    assert.ok(more.includes('| canary | 2024-02-01T00:00:00.000Z | a\\|b |'), more);
    assert.ok(more.includes('| 2 | 2 min |'), more);
    assert.ok(more.includes('waited for: 2'), more);
  });

  it('stay below 20,000 bytes whatever names and messages hold', () => {
    for (const sign of ['|', '\\', '語', '\n', '😀']) {
      const long = sign.repeat(5_000);
      const details = currentDetails({
        ...BASE,
        pipeline: long,
        first: long,
        last: long,
        paused: { by: 'lever', reason: long, since: 'now' },
        running: Array.from({ length: 100 }, () => ({ keys: long, since: 'now' })),
        failures: Array.from({ length: 10 }, () => ({ key: long, type: long, message: long })),
      });
      const bytes = Buffer.byteLength(details);
      assert.ok(bytes < 20_000, `${sign}: ${bytes} bytes`);
    }
  });
});

describe('pace', () => {
  it('is not known before five have ended, and is carried', () => {
    const pace = new Pace({ from: 1_000, ends: [60_000, 60_000, 60_000, 120_000] });
    assert.equal(pace.perMinute, undefined);
    const five = new Pace({ from: 1_000, ends: [60_000, 60_000, 60_000, 120_000, 150_000] });
    assert.equal(five.perMinute, 2);
    assert.deepEqual(new Pace(five.carried).perMinute, 2);
    for (let i = 0; i < 1_000; i += 1) five.ended();
    // Those that end at one moment, as a batch's do, are kept as one.
    assert.ok(five.carried.ends.length <= 50, String(five.carried.ends.length));
    five.restart();
    assert.equal(five.perMinute, undefined);
  });
});

describe('progress', () => {
  const harness = new Harness();

  it('says rate and time left once they are known, what runs since when, and nothing that is not so', async () => {
    const keys = days('2024-01-01', 10);
    const held = gate();
    const calls = scripted({
      keys,
      plan: { first: keys[0], last: keys[9], concurrency: 2 },
      fill: async (key) => {
        if (key === keys[2]) throw ApplicationFailure.nonRetryable('bad', 'DataError');
        if (key >= keys[6]!) await held.opened;
      },
    });
    const handle = await harness.backfill(calls);
    await until(
      async () =>
        (await handle.query<Progress>('progress')).running.length === 2 &&
        calls.calls.includes(`fillPartition ${keys[7]}`),
    );
    const progress = await handle.query<Progress>('progress');
    assert.deepEqual([progress.filled, progress.failed, progress.phase, progress.concurrency], [5, 1, 'filling', 2]);
    assert.deepEqual(
      progress.running.map((child) => child.keys),
      keys.slice(6, 8),
    );
    for (const { since } of progress.running) assert.ok(Date.parse(since) > 0);
    assert.ok(progress.perMinute! > 0);
    assert.equal(progress.secondsLeft, Math.ceil((4 * 60) / progress.perMinute!));
    await handle.executeUpdate<Steered, [unknown]>('pause', { args: [{ reason: 'a | b' }] });
    const paused = await handle.query<Progress>('progress');
    assert.deepEqual([paused.phase, paused.secondsLeft], ['paused', undefined]);
    const metadata = await handle.query<{ currentDetails: string }>('__temporal_workflow_metadata');
    assert.ok(metadata.currentDetails.includes('a \\| b'), metadata.currentDetails);
    await handle.executeUpdate<Steered, [unknown]>('resume', { args: [{}] });
    assert.equal((await handle.query<Progress>('progress')).perMinute, undefined);
    held.open();
    await handle.result().catch(() => undefined);
  });

  it('of a dry run is its result: the plan’s id and counts', async () => {
    const counts = { failed: 1, missing: 2, outdated: 0, changed: 0, filled: 0 };
    const calls = scripted({
      keys: days('2024-01-01', 3),
      plan: { dryRun: { keys: ['2024-01-01'], plan: 'p1', counts } },
    });
    const result = (await (await harness.backfill(calls)).result()) as Record<string, unknown>;
    assert.deepEqual([result.plan, result.counts, result.keys], ['p1', counts, ['2024-01-01']]);
  });
});
