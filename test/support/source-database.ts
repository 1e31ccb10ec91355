import type { SqlPipeline } from '../../src/pipeline/pipeline.js';
import { type Database, type DatabaseOptions, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import type { FillOutcome } from '../../src/warehouse/fill-request.js';
import type { TestDatabase } from './database.js';
import { fillRequest, PATIENT, type RequestOptions, sqlPipeline } from './fill.js';

/** The variable that names the source in a pipeline of a test. */
export const SOURCE = 'SOURCE_URL';

/** A pipeline whose query runs on another database. */
export function relayPipeline(query: string, settings: Parameters<typeof sqlPipeline>[1] = {}): SqlPipeline {
  return sqlPipeline(query, { source: SOURCE, ...settings });
}

/** Opens the target and the source as a worker does, by default with patience, and closes them after `use`. */
export async function withRelay<T>(
  target: Pick<TestDatabase, 'url'>,
  source: Pick<TestDatabase, 'url'>,
  use: (target: Database, source: Database) => Promise<T>,
  options: Partial<DatabaseOptions> = {},
): Promise<T> {
  const into = await openDatabase(target.url, { fills: 4, ...PATIENT, ...options });
  try {
    const from = await openDatabase(source.url, { fills: 4, ...PATIENT, ...options });
    try {
      return await use(into, from);
    } finally {
      await from.close();
    }
  } finally {
    await into.close();
  }
}

/** Fills one partition from the source. */
export function relay(
  target: Database,
  source: Database,
  pipeline: SqlPipeline,
  options: RequestOptions = {},
): Promise<FillOutcome> {
  return fill(target, { ...fillRequest(pipeline, options), source });
}
