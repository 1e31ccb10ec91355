import assert from 'node:assert/strict';
import { createOutput } from '../../src/cli/output.js';
import { failureLines } from '../../src/cli/status-text.js';

it('`status PIPELINE` says of a failed partition that rests so, and how to fill it', () => {
  const output = createOutput({ color: false }, {});
  const failed = { pipeline: 'rates', type: 'CheckFailed', message: 'no\nrows', at: null };
  const lines = failureLines(output, [
    { ...failed, key: '2024-01-01' },
    { ...failed, key: '2024-01-02', rests: true },
  ]);
  assert.deepEqual(lines.split('\n'), [
    '✗ 2024-01-01  CheckFailed: no rows',
    '✗ 2024-01-02  CheckFailed: no rows',
    '  it rests: healing tries it no more. Once it is mended: repave backfill rates 2024-01-02',
  ]);
});
