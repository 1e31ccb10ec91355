import { refuseMismatch } from './columns.js';
import type { FillRequest } from './fill-request.js';
import { quotedList } from './identifier.js';
import { droppedRows } from './row-accounts.js';
import type { RowSupply } from './row-supply.js';
import type { SpooledRows } from './source-rows.js';
import type { Target } from './target.js';

/** Rows read before the lock, and the newest fill of the partition when they were. */
export interface SpooledSource extends SpooledRows {
  readonly after: number;
}

/** The rows of a TypeScript pipeline, from the worker's spool file by COPY. */
export function spooledSupply(
  request: FillRequest,
  target: Target,
  { spool, rows, columns }: SpooledSource,
): RowSupply {
  // No row has no columns.
  if (rows > 0) refuseMismatch(request.pipeline.name, columns, target, request.pipeline.partition.column);
  const { sourceVersion } = request.origin ?? {};
  return {
    columns,
    async write(session, { table }) {
      if (rows === 0) return { sent: 0, sums: new Map(), sourceVersion };
      const copied = await session.copy(`COPY ${table} (${quotedList(columns)}) FROM STDIN`, spool.read());
      if (copied !== rows) throw droppedRows(target, rows, rows - copied);
      return { sent: copied, sums: new Map(), sourceVersion };
    },
    close: async () => undefined,
  };
}
