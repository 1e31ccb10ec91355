import assert from 'node:assert/strict';
import picocolors from 'picocolors';
import { changeLines } from '../../src/cli/deploy-text.js';
import { localTime, scheduleLines, scheduleRow } from '../../src/cli/schedule-text.js';
import type { SeenSchedule } from '../../src/client.js';

const plain = { colors: picocolors.createColors(false) };
const at = (time: string): Date => new Date(time);
const SEEN: SeenSchedule = {
  pipeline: 'sales_summary',
  cron: '30 1 * * *',
  zone: 'America/New_York',
  last: 1,
  heal: 30,
  keptBy: 'deploy',
  next: [at('2024-11-03T05:30:00Z'), at('2024-11-03T06:30:00Z'), at('2024-11-04T06:30:00Z')],
  lastRun: { id: 'r', scheduledAt: at('2024-11-02T05:30:00Z'), ended: 'timed_out' },
};

describe('a schedule as it is shown', () => {
  it('has its times in its own zone, below each other for people', () => {
    assert.deepEqual(scheduleLines(SEEN, plain), [
      'sales_summary  at 30 1 * * * (America/New_York), last 1, heal 30, by deploy',
      '    next       2024-11-03 01:30, 2024-11-03 01:30, 2024-11-04 01:30',
      '    last run   2024-11-02 01:30 timed out',
    ]);
  });

  it('says why its last run failed, on one line', () => {
    const lastRun = {
      id: 'r',
      scheduledAt: at('2024-11-02T05:30:00Z'),
      ended: 'failed',
      reason: 'UnknownPipeline: No pipeline',
    };
    const text = '2024-11-02 01:30 failed: UnknownPipeline: No pipeline';
    assert.equal(scheduleLines({ ...SEEN, lastRun }, plain).at(-1), `    last run   ${text}`);
    assert.equal(scheduleRow({ ...SEEN, lastRun })[7], text);
  });

  it('says why it is paused, and nothing of times that will not come', () => {
    const paused = { ...SEEN, next: [], paused: 'moved', lastRun: undefined };
    assert.deepEqual(scheduleLines(paused, plain).slice(1), ['    paused     moved']);
    assert.equal(scheduleRow(paused)[6], 'paused: moved');
    assert.equal(scheduleRow({ ...paused, paused: '' })[6], 'paused');
    assert.equal(scheduleRow({ ...paused, paused: undefined })[6], 'never');
  });

  it('of which only the heal is left says no more than there is', () => {
    const { last: _last, lastRun: _lastRun, ...left } = SEEN;
    assert.deepEqual(
      scheduleLines(left, plain)[0],
      'sales_summary  at 30 1 * * * (America/New_York), heal 30, by deploy',
    );
    assert.equal(scheduleRow(left)[3], '');
  });

  it('shows a new one with the lookback of its file, which it goes by', () => {
    const { cron, zone } = SEEN;
    const request = { pipeline: 'rates', cron, zone, last: 1, healsChanged: false, keeper: 'deploy' } as const;
    const added = { kind: 'added', pipeline: 'rates', request } as const;
    const shown = (lookback: number) => changeLines(added, plain, new Map([['rates', lookback]]));
    assert.deepEqual(shown(2), ['+ rates  at 30 1 * * * (America/New_York), last 1, lookback 2']);
    assert.deepEqual(shown(0), ['+ rates  at 30 1 * * * (America/New_York), last 1']);
  });

  it('falls back to UTC in a zone that is not known here', () => {
    assert.equal(localTime(at('2024-11-03T05:30:00Z'), 'Mars/Olympus'), '2024-11-03 05:30 UTC');
  });
});
