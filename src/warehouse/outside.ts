import { Failure } from '../failure.js';
import type { WindowCondition } from './checks.js';
import type { FillRequest } from './fill-request.js';
import { quoted } from './identifier.js';
import type { Session } from './session.js';

/**
 * Says which rows of this transaction do not stand in its window: how many, how many with no time at all, and the partition
 * column's smallest and largest. A pass over the whole table, made only once the fill has failed.
 */
export async function describeOutside(
  session: Session,
  window: WindowCondition,
  request: FillRequest,
  inserted: number,
  inside: number,
): Promise<Failure> {
  const column = quoted(request.pipeline.partition.column);
  const [row] = await session.rows<{ nulls: number; lowest: string | null; highest: string | null }>(
    `SELECT pg_catalog.count(*) FILTER (WHERE ${column} IS NULL)::pg_catalog.float8 AS nulls,
            pg_catalog.min(${column})::pg_catalog.text AS lowest, pg_catalog.max(${column})::pg_catalog.text AS highest
       FROM ${window.table}
      WHERE xmin::pg_catalog.text = (pg_catalog.pg_current_xact_id()::pg_catalog.text::pg_catalog.int8 & 4294967295)::pg_catalog.text
        -- True for NULL and infinity as well, which NOT (…) would pass over.
        AND (${window.condition}) IS NOT TRUE`,
    window.values,
  );
  const { pipeline, window: wanted } = request;
  const seen = [
    row?.nulls ? `${row.nulls} with NULL` : '',
    row?.lowest !== undefined && row.lowest !== null ? `from ${row.lowest} to ${row.highest}` : '',
  ].filter(Boolean);
  return new Failure(
    'RowsOutsideWindow',
    `${inserted - inside} of ${inserted} rows of ${pipeline.name} ${wanted.key} do not lie in its window [${window.values[0]}, ${window.values[1]}) by ${pipeline.partition.column}` +
      `${seen.length > 0 ? ` (${seen.join(', ')})` : ''}. The old rows stand. Select only the window’s rows: WHERE … >= :start AND … < :end.`,
  );
}
