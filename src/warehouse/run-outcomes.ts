import { NAMES_NOW } from './carry-over.js';
import type { Database } from './database.js';
import type { FillOutcome } from './fill-request.js';

/** What a run has come to on one partition so far. */
export interface RunOutcome {
  readonly key: string;
  /** What it has committed. */
  readonly fill?: FillOutcome;
  /** How it has failed for good. */
  readonly failure?: { readonly type: string; readonly message: string };
  /** Of its newest attempt; absent where none has begun, or the fill has committed. */
  readonly claim?: { readonly fence: number; readonly closed: boolean };
}

/** What a run has come to on each of these partitions, in their order: one look at the ledger. */
export async function runOutcomes(
  database: Database,
  pipeline: string,
  keys: readonly string[],
  run: string,
): Promise<RunOutcome[]> {
  const rows = await database.query<Row>(
    `SELECT k.key, f.fence::pg_catalog.float8 AS fence, f.rows_inserted::pg_catalog.float8 AS rows,
            f.rows_deleted::pg_catalog.float8 AS deleted, f.seconds, f.warnings, f.unchanged,
            x.type, x.message, c.fence::pg_catalog.float8 AS "claimFence", c.closed
       FROM pg_catalog.unnest($2::pg_catalog.text[]) WITH ORDINALITY AS k (key, place)
      CROSS JOIN (SELECT ${NAMES_NOW} AS names) n
       LEFT JOIN repave.fill f ON f.pipeline = ANY (n.names) AND f.key = k.key AND f.run = $3
       LEFT JOIN repave.failure x ON x.pipeline = ANY (n.names) AND x.key = k.key AND x.run = $3
       LEFT JOIN repave.claim c ON c.pipeline = $1 AND c.key = k.key AND c.run = $3
      ORDER BY k.place`,
    [pipeline, keys, run],
  );
  return rows.map(({ key, fence, rows, deleted, seconds, warnings, unchanged, type, message, claimFence, closed }) => ({
    key,
    fill: fence === null ? undefined : { fence, rows, deleted, seconds, warnings, unchanged, found: true },
    failure: type === null ? undefined : { type, message },
    claim: claimFence === null ? undefined : { fence: claimFence, closed },
  }));
}

/** Columns of a table that has no row for the key are null. */
interface Row {
  readonly key: string;
  readonly fence: number | null;
  readonly rows: number;
  readonly deleted: number;
  readonly seconds: number;
  readonly warnings: readonly string[];
  readonly unchanged: boolean;
  readonly type: string | null;
  readonly message: string;
  readonly claimFence: number | null;
  readonly closed: boolean;
}
