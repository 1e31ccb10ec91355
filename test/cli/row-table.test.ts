import assert from 'node:assert/strict';
import { createOutput, type Output } from '../../src/cli/output.js';
import { rowTable } from '../../src/cli/row-table.js';

describe('a table of rows', () => {
  const on = (screen: { isTTY?: boolean; columns?: number }): Output =>
    createOutput({ color: false }, {}, { ...screen, write: () => true }, { write: () => true });
  const columns = ['id', 'name', 'note'];
  const rows = [
    ['1', 'Ada', 'x'.repeat(200)],
    ['2', null, ''],
  ];

  it('fits the terminal by cutting the longest values', () => {
    for (const width of [120, 80, 40, 30]) {
      const { text, leftOut } = rowTable(on({ isTTY: true, columns: width }), columns, rows);
      assert.deepEqual(leftOut, []);
      const lines = text.split('\n');
      assert.equal(lines.length, 3);
      assert.ok(
        lines.every((line) => line.length <= width),
        `${width}: ${text}`,
      );
      assert.match(lines[1] ?? '', /^1 +Ada +x+…$/);
      assert.match(lines[2] ?? '', /^2 +NULL$/);
    }
  });

  it('leaves out the last columns where a terminal is too narrow for all, and names them', () => {
    const many = Array.from({ length: 20 }, (_, i) => `column_${i}`);
    const { text, leftOut } = rowTable(on({ isTTY: true, columns: 40 }), many, [many]);
    assert.ok(
      text.split('\n').every((line) => line.length <= 40),
      text,
    );
    assert.ok(text.startsWith('colum…'));
    assert.deepEqual(leftOut, many.slice(5));
  });

  it('is whole in a pipe, a line a row', () => {
    const { text, leftOut } = rowTable(on({ isTTY: false }), columns, rows);
    assert.deepEqual(leftOut, []);
    assert.deepEqual(text.split('\n'), ['id\tname\tnote', `1\tAda\t${'x'.repeat(200)}`, '2\tNULL\t']);
  });

  it('lets no value break a line, or do anything to the terminal', () => {
    const hostile = 'a\tb\nc\r\u001b]0;owned\u0007\u009b31m\u202edcba\u0000';
    for (const isTTY of [true, false]) {
      const { text } = rowTable(on({ isTTY, columns: 200 }), [hostile], [[hostile]]);
      assert.equal(text.split('\n').length, 2);
      // eslint-disable-next-line no-control-regex -- the very characters that must not be there
      assert.doesNotMatch(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/);
      assert.ok(text.includes('a\\tb\\nc\\r\\u001b]0;owned\\u0007\\u009b31m\\u202edcba\\u0000'));
    }
  });
});
