import type { Database } from './database.js';

/** Whether the ledger has a partition or a fill of a pipeline of that name. */
export async function hasLedgerRows(database: Database, pipeline: string): Promise<boolean> {
  const [row] = await database.query<{ has: boolean }>(
    `SELECT EXISTS (SELECT FROM repave.partition WHERE pipeline = $1)
         OR EXISTS (SELECT FROM repave.fill WHERE pipeline = $1) AS has`,
    [pipeline],
  );
  return row?.has ?? false;
}
