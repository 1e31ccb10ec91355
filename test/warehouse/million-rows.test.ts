import assert from 'node:assert/strict';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { type FillingProcess, startFilling } from '../support/filling.js';
import { asSuperuser, countStatements } from '../support/superuser.js';

/** What a fill of a million rows may take beyond one of five thousand: far less than the rows. */
const GROWTH = 60 * 2 ** 20;
/** The whole process, with the programs that it has loaded. */
const PEAK = 320 * 2 ** 20;

describe('a million rows of a TypeScript source', function () {
  // Half a minute of work, and many times that on a slow machine.
  this.timeout(600_000);
  let test: TestDatabase;
  let child: FillingProcess | undefined;

  before(async () => {
    test = await createTestDatabase();
    await countStatements(test);
  });
  beforeEach(() => test.sql('DROP TABLE IF EXISTS target; CREATE TABLE target (day date NOT NULL, n int, note text)'));
  afterEach(() => child?.process.kill('SIGKILL'));
  after(() => test.drop());

  for (const straight of [false, true]) {
    it(`take no more memory than five thousand, and go by COPY: ${straight ? 'straight' : 'through the spool'}`, async () => {
      // 100 MB of text and more as objects: they would not fit into this heap.
      child = startFilling({ url: test.url, rows: [5_000, 1_000_000], width: 80, straight, heap: 64 });
      const [, few = ''] = await child.line(/^filled 5000 (\d+)$/);
      const [, all = ''] = await child.line(/^filled 1000000 (\d+)$/);
      assert.ok(Number(all) - Number(few) < GROWTH, `memory grew from ${megabytes(few)} to ${megabytes(all)} MB`);
      assert.ok(Number(all) < PEAK, `${megabytes(all)} MB at most`);
      const [row] = await test.sql('SELECT count(*)::int AS rows, count(DISTINCT n)::int AS different FROM target');
      assert.deepEqual(row, { rows: 1_000_000, different: 1_000_000 });
      const sent = await asSuperuser<{ query: string; calls: number; rows: number }>(
        test,
        `SELECT query, calls::int, rows::int FROM statements.pg_stat_statements
          WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND userid = $1::regrole AND query ~ '^(COPY|INSERT INTO) "?target'`,
        [test.workerRole],
      );
      assert.deepEqual(sent, [{ query: 'COPY "target" ("day", "n", "note") FROM STDIN', calls: 2, rows: 1_005_000 }]);
      await asSuperuser(
        test,
        'SELECT statements.pg_stat_statements_reset(0, oid, 0) FROM pg_database WHERE datname = current_database()',
      );
    });
  }
});

function megabytes(bytes: string): number {
  return Math.round(Number(bytes) / 2 ** 20);
}
