import assert from 'node:assert/strict';
import { sizeFindings } from '../../src/cli/examine-ledger-size.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { ledgerSizes, type TableSize } from '../../src/warehouse/ledger-size.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';

const DAY_MS = 86_400_000;

describe('what doctor says of the size of the ledger', () => {
  const sizes = (fills: number, prunable: number, partitions: number, sampled = false): TableSize[] => [
    { table: 'fill', rows: fills, prunable, bytes: 500 * fills, sampled },
    { table: 'partition', rows: partitions, prunable: 0, bytes: 100 * partitions, sampled },
  ];

  it('is fine, with what there is, as long as pruning is not worth while', () => {
    assert.deepEqual(sizeFindings(sizes(1_200, 200, 1_000)), [
      {
        state: 'fine',
        text: "the ledger's rows: fill 1,200, partition 1,000; 700 kB with indexes; `repave prune` would remove 200 that are needed no more",
      },
    ]);
    assert.equal(sizeFindings(sizes(99_000, 0, 10)).length, 1, 'few fills are nothing to mend, however few partitions');
  });

  it('is to prune it once a million rows are old and over', () => {
    const [fine, unsure] = sizeFindings(sizes(3_000_000, 1_000_001, 1_000_000, true));
    assert.match(fine?.text ?? '', /rows: about fill 3,000,000/);
    assert.deepEqual(
      [unsure?.state, unsure?.text],
      ['unsure', 'the ledger has about 1,000,001 rows that are old and over'],
    );
    assert.match(unsure?.advice ?? '', /Run `repave prune`/);
  });

  it('is to keep less where there are more than ten fills of each partition', () => {
    const [, unsure] = sizeFindings(sizes(1_100_001, 0, 100_000));
    assert.match(unsure?.text ?? '', /keeps 11 fills of each partition/);
    assert.match(unsure?.advice ?? '', /--keep 30d/);
  });
});

describe('the sizes of the ledger’s tables', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 1 });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });

  const fillRows = (from: number, to: number): Promise<unknown> =>
    test.sql(
      `INSERT INTO repave.fill (pipeline, key, window_start, window_end, run, activity, attempt, fence, fingerprint,
                                rows_deleted, rows_inserted, seconds, checks, warnings, filled_at)
       SELECT 'target', 'k' || n / 2, now(), now(), 'run' || n, '1', 1, n, 'v1:x', 0, 1, 0.1, '[]', '{}', now() - interval '100 days'
         FROM generate_series($1::int, $2::int - 1) n`,
      [from, to],
    );
  const ofFills = async (): Promise<TableSize | undefined> =>
    (await ledgerSizes(database, 90 * DAY_MS)).find(({ table }) => table === 'fill');

  it('are counted where they are small, and estimated from some of their pages where they are large', async () => {
    assert.deepEqual(
      (await ledgerSizes(database, DAY_MS)).map(({ table, rows, prunable, sampled }) => [
        table,
        rows,
        prunable,
        sampled,
      ]),
      ['run_key', 'claim', 'fill', 'failure', 'notice', 'backfill', 'partition'].map((table) => [table, 0, 0, false]),
    );
    await fillRows(0, 1_000);
    const small = await ofFills();
    assert.deepEqual([small?.rows, small?.prunable, small?.sampled], [1_000, 500, false]);
    await fillRows(1_000, 40_000);
    const large = await ofFills();
    assert.equal(large?.sampled, true);
    // About one page of five, each with as many rows as any other.
    assert.ok(large.rows > 20_000 && large.rows < 60_000, String(large.rows));
    assert.ok(Math.abs(large.prunable - large.rows / 2) < large.rows / 10, `${large.prunable} of ${large.rows}`);
  });
});
