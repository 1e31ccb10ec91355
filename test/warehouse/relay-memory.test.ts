import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createTestDatabase } from '../support/database.js';

const PROGRAM = fileURLToPath(new URL('../support/relaying-process.ts', import.meta.url));
/** Rows of the fill that sets the measure, and of the one that is measured. */
const FEW = 60_000;
const MANY = 3_000_000;
const MB = 1024 * 1024;
/** Bytes by which the peak may grow, while some 70 MB of rows go through. */
const GROWTH = 60 * MB;

describe('three million rows from another PostgreSQL', function () {
  this.timeout(300_000);

  it('pass through a worker that holds none of them', async () => {
    const [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    try {
      // Its index makes the target the slower of the two: what is not held back at the source would pile up between.
      await test.sql('CREATE TABLE target (day date NOT NULL, n int); CREATE INDEX ON target (n)');
      const { stdout } = await promisify(execFile)(process.execPath, ['--import', 'tsx', PROGRAM], {
        env: {
          PATH: process.env.PATH,
          RELAY_TEST_TARGET: test.url,
          RELAY_TEST_SOURCE: remote.url,
          RELAY_TEST_ROWS: [FEW, MANY].join(),
        },
      });
      const peaks = [...stdout.matchAll(/^filled (\d+) (\d+)$/gm)].map(([, rows, peak]) => [
        Number(rows),
        Number(peak),
      ]);
      assert.deepEqual(
        peaks.map(([rows]) => rows),
        [FEW, MANY],
      );
      const grown = (peaks[1]?.[1] ?? NaN) - (peaks[0]?.[1] ?? NaN);
      assert.ok(grown < GROWTH, `the peak grew by ${Math.round(grown / MB)} MB`);
    } finally {
      await Promise.all([test.drop(), remote.drop()]);
    }
  });
});
