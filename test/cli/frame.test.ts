import assert from 'node:assert/strict';
import picocolors from 'picocolors';
import type { Progress } from '../../src/contract.js';
import { frame, line, PaceMeter } from '../../src/cli/frame.js';

const colors = picocolors.createColors(false);
const progress: Progress = {
  pipeline: 'sales_summary',
  first: '1997-01-01',
  last: '1997-01-31',
  phase: 'filling',
  total: 31,
  filled: 12,
  failed: 1,
  skipped: 0,
  rows: 12_345,
  running: ['1997-01-14', '1997-01-15'],
  failures: [{ key: '1997-01-03', type: 'CheckFailed', message: 'rows: 0' }],
};

describe('the live view', () => {
  it('says what, how far, how fast, how long and what runs now', () => {
    assert.equal(
      frame(progress, { perSecond: 2 }, { columns: 80, colors }),
      [
        'sales_summary  1997-01-01..1997-01-31',
        '████████████×···················  41 %',
        '13 of 31 · 1 failed · 12,345 rows · 2.0/s · about 9 s left',
        'filling 1997-01-14, 1997-01-15',
      ].join('\n'),
    );
  });

  it('stays within the terminal', () => {
    const running = Array.from({ length: 100 }, (_, index) => `1997-01-01T${String(index).padStart(2, '0')}Z`);
    const text = frame({ ...progress, running }, { perSecond: 0.01 }, { columns: 40, colors });
    for (const row of text.split('\n')) assert.ok(row.length <= 40, `${row.length}: ${row}`);
  });

  it('neither wraps nor throws in a terminal of any width', () => {
    for (let columns = 1; columns <= 40; columns++) {
      for (const filled of [0, 12, 30]) {
        const text = frame({ ...progress, filled }, { perSecond: 2 }, { columns, colors });
        for (const row of text.split('\n')) assert.ok(row.length <= columns, `${columns}: ${row}`);
      }
    }
  });

  it('says what it plans before there is a range', () => {
    const planning = { ...progress, first: undefined, last: undefined, phase: 'planning', total: 0 } as const;
    assert.equal(line(planning, { perSecond: undefined }), 'sales_summary: planning');
  });

  it('names some of what runs and counts the others', () => {
    const running = Array.from({ length: 12 }, (_, index) => String(2000 + index));
    const text = frame({ ...progress, running }, { perSecond: undefined }, { columns: 120, colors });
    assert.match(text, /filling 2000, .*2007 and 4 more$/);
  });

  it('shows one failure among very many', () => {
    const text = frame(
      { ...progress, total: 100_000, filled: 99_999 },
      { perSecond: undefined },
      { columns: 80, colors },
    );
    assert.match(text, /×/);
    assert.match(text, /100,000 of 100,000 · 1 failed/);
  });

  it('shows a plan in the making, and a backfill of nothing', () => {
    const empty = { ...progress, total: 0, filled: 0, failed: 0, rows: 0, running: [], failures: [] };
    assert.match(frame({ ...empty, phase: 'planning' }, { perSecond: undefined }, { columns: 80, colors }), /planning/);
    assert.match(
      frame({ ...empty, phase: 'ended' }, { perSecond: undefined }, { columns: 80, colors }),
      /0 of 0 · 0 rows · ended/,
    );
  });

  it('is one line in a pipe', () => {
    assert.equal(
      line(progress, { perSecond: 0.5 }),
      'sales_summary 1997-01-01..1997-01-31: 13 of 31 · 1 failed · 12,345 rows · 30.0/min · about 36 s left',
    );
  });
});

describe('the pace', () => {
  const at = (done: number) => ({ ...progress, filled: done, failed: 0 });

  it('is not told before there is something to go by', () => {
    const meter = new PaceMeter();
    assert.equal(meter.see(at(0), 0).perSecond, undefined);
    assert.equal(meter.see(at(5), 500).perSecond, undefined);
    assert.equal(meter.see(at(5), 2_000).perSecond, 2.5);
  });

  it('follows a change of speed within about a minute', () => {
    const meter = new PaceMeter();
    for (let second = 0; second <= 60; second++) meter.see(at(second * 10), second * 1_000);
    let pace = meter.see(at(600), 60_000);
    for (let second = 61; second <= 130; second++) pace = meter.see(at(600 + second - 60), second * 1_000);
    assert.equal(pace.perSecond, 1);
  });
});
