import assert from 'node:assert/strict';
import { createOutput, hasColor, type Screen } from '../../src/cli/output.js';
import { table } from '../../src/cli/table.js';

function screen(isTTY: boolean): Screen & { text: string } {
  return {
    isTTY,
    columns: 80,
    text: '',
    write(text: string) {
      this.text += text;
    },
  };
}

describe('where words go', () => {
  it('results to standard output, the rest to standard error', () => {
    const [stdout, stderr] = [screen(false), screen(false)];
    const output = createOutput({}, {}, stdout, stderr);
    output.result('31 partitions');
    output.document({ total: 31 });
    output.say('planning');
    assert.equal(stdout.text, '31 partitions\n');
    assert.equal(stderr.text, 'planning\n');
  });

  it('with --json only JSON goes to standard output, its version first', () => {
    const [stdout, stderr] = [screen(true), screen(true)];
    const output = createOutput({ json: true }, {}, stdout, stderr);
    output.result('31 partitions');
    output.document({ total: 31 });
    assert.equal(stdout.text, '{"version":1,"total":31}\n');
    assert.equal(stderr.text, '');
  });

  it('colours a terminal, never a pipe, and not even where CI is set', () => {
    assert.equal(hasColor(screen(true), {}, {}), true);
    assert.equal(hasColor(screen(false), {}, {}), false);
    assert.equal(hasColor(screen(false), {}, { CI: 'true' }), false);
  });

  it('heeds NO_COLOR, --no-color, TERM=dumb and FORCE_COLOR', () => {
    assert.equal(hasColor(screen(true), {}, { NO_COLOR: '1' }), false);
    assert.equal(hasColor(screen(true), { color: false }, { FORCE_COLOR: '1' }), false);
    assert.equal(hasColor(screen(true), {}, { TERM: 'dumb' }), false);
    assert.equal(hasColor(screen(false), {}, { FORCE_COLOR: '1' }), true);
    assert.equal(hasColor(screen(false), {}, { FORCE_COLOR: '0' }), false);
  });
});

describe('a table', () => {
  const columns = [{ heading: 'key' }, { heading: 'rows', align: 'right' }] as const;
  const rows = [
    ['1997-01-01', '1'],
    ['1997-01-02', '12,345'],
  ];

  it('is aligned and without borders on a terminal', () => {
    const output = createOutput({ color: false }, {}, screen(true), screen(true));
    assert.equal(table(output, columns, rows), 'key           rows\n1997-01-01       1\n1997-01-02  12,345');
  });

  it('is tab-separated in a pipe', () => {
    const output = createOutput({}, {}, screen(false), screen(false));
    assert.equal(table(output, columns, rows), 'key\trows\n1997-01-01\t1\n1997-01-02\t12,345');
  });
});
