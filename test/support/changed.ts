import assert from 'node:assert/strict';
import { windowOf } from '../../src/calendar/window.js';
import type { SqlPipeline } from '../../src/pipeline/pipeline.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { readChanged } from '../../src/pipeline/written-query.js';
import type { Database } from '../../src/warehouse/database.js';
import type { FillRequest } from '../../src/warehouse/fill-request.js';
import { movedPartitions } from '../../src/warehouse/moved-partitions.js';
import { partitionStates } from '../../src/warehouse/partition-states.js';
import type { TestDatabase } from './database.js';
import { sqlPipeline } from './fill.js';

/** A SQL pipeline whose file has this query and this `changed`: `rows`, or a query. */
export async function changing(
  changed: string,
  query: string,
  settings: Parameters<typeof sqlPipeline>[1] = {},
): Promise<SqlPipeline> {
  const pipeline = sqlPipeline(query, settings);
  const own = { written: query, tokens: sqlTokens(query), query: pipeline.query };
  const read = await readChanged(changed, pipeline.partition.by, own, undefined);
  assert.deepEqual(read.problems, []);
  assert.ok(read.changed);
  return { ...pipeline, changed: read.changed };
}

/** Keys of a pipeline's filled partitions whose source has moved, as its `changed` says now. */
export async function moved(
  database: Database,
  pipeline: FillRequest['pipeline'],
  { source, signal = new AbortController().signal }: { readonly source?: Database; readonly signal?: AbortSignal } = {},
): Promise<string[]> {
  const states = await partitionStates(database, pipeline.name, [{ from: '0', to: '9' }]);
  const filled = [...states.values()].filter(({ outcome }) => outcome === 'filled');
  return [...(await movedPartitions({ database, source, signal }, pipeline, filled))].sort();
}

/** The versions that the ledger has of a partition's source: of its fills, the first first, and of what stands. */
export async function versions(
  test: TestDatabase,
  { name, partition }: Pick<SqlPipeline, 'name' | 'partition'>,
  key: string,
): Promise<{ readonly fills: readonly (string | null)[]; readonly now: string | null | undefined }> {
  const of = [name, windowOf(partition, key).key];
  const fills = await test.sql<{ version: string | null }>(
    'SELECT source_version AS version FROM repave.fill WHERE pipeline = $1 AND key = $2 ORDER BY id',
    of,
  );
  const [row] = await test.sql<{ version: string | null }>(
    'SELECT source_version AS version FROM repave.partition WHERE pipeline = $1 AND key = $2',
    of,
  );
  return { fills: fills.map(({ version }) => version), now: row?.version };
}
