import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import picocolors from 'picocolors';
import { frame, line } from '../../src/cli/frame.js';
import { bar } from '../../src/cli/progress-bar.js';
import { widthOf } from '../../src/cli/width.js';
import { captures, goldenFiles, now, sights } from './scenes.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const colors = picocolors.createColors(false);
const everySight = Object.entries(sights);

/** Written anew by `npm run frames`; then read the difference. */
function holds(folder: string, files: ReadonlyMap<string, string>): void {
  for (const [name, text] of files) assert.equal(readFileSync(join(ROOT, folder, name), 'utf8'), text, name);
  assert.deepEqual(readdirSync(join(ROOT, folder)).sort(), [...files.keys()].sort());
}

describe('the live view', () => {
  it('is what its golden files hold', () => holds('test/fixtures/frames', goldenFiles()));

  it('is what the captures in the docs show', () => holds('docs/captures', captures()));

  it('neither wraps nor scrolls, in a terminal of any size', () => {
    const wide = Array.from({ length: 45 }, (_, index) => ({ columns: index + 1, rows: 49 }));
    const high = Array.from({ length: 25 }, (_, index) => ({ columns: 80, rows: index + 1 }));
    for (const [name, sight] of everySight) {
      for (const { columns, rows } of [...wide, ...high, { columns: 200, rows: 49 }]) {
        const lines = frame(sight, { columns, rows, colors, now }).split('\n');
        assert.ok(lines.length <= rows, `${name} at ${columns}x${rows}: ${lines.length} lines`);
        for (const row of lines) assert.ok(widthOf(row) <= columns, `${name} at ${columns}: ${row}`);
      }
    }
  });

  it('says the same without colour', () => {
    const options = { columns: 80, rows: 23, now };
    for (const [name, sight] of everySight) {
      const coloured = frame(sight, { ...options, colors: picocolors.createColors(true) });
      assert.notEqual(coloured, stripVTControlCharacters(coloured));
      assert.equal(stripVTControlCharacters(coloured), frame(sight, { ...options, colors }), name);
    }
  });

  it('lets no message do anything to the terminal', () => {
    const sight = sights['3-failures']!;
    const failures = [
      { key: '1997-02-01', type: 'SourceFailed', message: 'a\tb\nc\r\u001b]0;owned\u0007\u009b31m\u202edcba' },
    ];
    const progress = { ...sight.progress, failed: 1, failures };
    const text = frame({ ...sight, progress }, { columns: 200, rows: 50, colors, now });
    assert.match(text, /a b c ]0;owned 31m dcba/);
    // eslint-disable-next-line no-control-regex -- the very characters that must not be there
    assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
  });

  it('says why what is left is not ready, and no time left, which nobody knows', () => {
    const sight = sights['3-failures']!;
    const progress = {
      ...sight.progress,
      total: 10,
      filled: 9,
      failed: 0,
      skipped: 0,
      busy: 0,
      waiting: 1,
      running: [],
      perMinute: 120,
      notReady: { key: '1997-02-01', reason: 'it comes after rates\n1997-02-01 (missing)' },
    };
    const why = '1997-02-01 is not ready: it comes after rates 1997-02-01 (missing)';
    for (const text of [
      frame({ ...sight, progress }, { columns: 200, rows: 50, colors, now }),
      line({ ...sight, progress }),
    ]) {
      assert.ok(text.includes(why), text);
      assert.doesNotMatch(text, /about| a (minute|second)/);
    }
    const moves = { ...progress, running: [{ keys: '1997-02-01', since: '1997-02-02T00:00:00Z' }], secondsLeft: 60 };
    assert.match(line({ ...sight, progress: moves }), /120 a minute · about 1(:00)? min( 0 s)? left/);
  });

  it('names all that there is room for, and counts the others', () => {
    const text = frame(sights['100-at-once']!, { columns: 80, rows: 23, colors, now });
    const lines = text.split('\n');
    assert.equal(lines.length, 23);
    const named = lines.filter((row) => row.startsWith('▓ 1997-')).length;
    assert.ok(lines.includes(`  and ${100 - named} more`), text);
    const failed = lines.filter((row) => row.startsWith('× 1997-')).length;
    assert.ok(
      lines.some((row) => row.startsWith(`  and ${50 - failed} more: repave plan `)),
      text,
    );
  });

  it('shows one failure among very many, and no whole that is not', () => {
    const { progress } = sights['one-failed-of-very-many']!;
    assert.match(bar(progress, 40, colors), /^█+×·$/);
    assert.match(frame({ progress }, { columns: 80, rows: 23, colors, now }), / 99 %/);
  });

  it('fills the bar to its width, whatever the shares', () => {
    for (const [name, { progress }] of everySight) {
      for (let width = 1; width <= 100; width++) assert.equal(bar(progress, width, colors).length, width, name);
    }
  });

  it('promises no time while it starts, is paused, or stops', () => {
    const times = (name: string): boolean => / (about|time) .*left/.test(line(sights[name]!));
    assert.ok(times('no-failures'));
    assert.match(line(sights.starting!), /time left not yet known/);
    for (const name of ['paused-by-failures', 'paused-by-a-person', 'stopping']) assert.ok(!times(name), name);
  });
});
