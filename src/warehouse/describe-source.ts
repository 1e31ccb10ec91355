import type { SqlPipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { lookOnly } from './look-only.js';
import { readSourceColumns, type SourceColumn } from './source-columns.js';
import { toSourceFailure } from './source-failure.js';

/**
 * Has the database that a pipeline reads from judge its query, and says the query's columns: nothing is read from a table.
 * Throws `InvalidPipeline` or `SchemaMismatch` with the server's verdict, `PermissionDenied`, `DatabaseUnavailable`.
 */
export async function describeSource(source: Database, pipeline: SqlPipeline): Promise<readonly SourceColumn[]> {
  try {
    return await lookOnly(source, 'repave check', pipeline.partition.zone, (session) =>
      readSourceColumns(session, pipeline.query.text),
    );
  } catch (error) {
    throw toSourceFailure(error, source, pipeline.name, { beforeRows: true });
  }
}
