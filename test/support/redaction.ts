import assert from 'node:assert/strict';
import { inspect } from 'node:util';
import type { FailureType } from '../../src/contract.js';
import type { Failure } from '../../src/failure.js';
import type { Row } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import type { TestDatabase } from './database.js';
import { failsAs, fillRequest, KEY, sqlPipeline, typescriptPipeline, withWorker } from './fill.js';

/** What stands in every column but the partition's, as text, number and date: none of it may be seen in a failure. */
export const MARKER = 'MARKER-7f3a';
export const NUMBER = 777_333_111;
const MARKERS: readonly RegExp[] = [/7f3a/i, /777.?333.?111/, /1977-07-03/];

/** A row of the markers, the columns it fits, and a table `source` that holds it twice. */
export const ROW = { day: KEY, secret: MARKER, number: NUMBER, born: '1977-07-03' };
export const COLUMNS = 'day date NOT NULL, secret text, number bigint, born date';
export const SOURCE = `CREATE TABLE source (${COLUMNS});
  INSERT INTO source SELECT '${KEY}', '${MARKER}', ${NUMBER}, '1977-07-03' FROM generate_series(1, 2)`;

/** Fails where a marker stands in text. */
export function assertUnmarked(text: string): void {
  for (const marker of MARKERS) assert.doesNotMatch(text, marker);
}

/** Fails where a marker stands in anything of a failure that could reach a history, a log or a person. */
export function assertRedacted(failure: Failure): void {
  const shown = [
    failure.stack,
    String(failure),
    JSON.stringify(failure),
    inspect(failure, { depth: 10, showHidden: true }),
  ];
  assertUnmarked(shown.join('\n'));
  assert.equal(failure.cause, undefined);
}

export interface MarkedFill {
  /** The select list of a SQL pipeline over `source`; null for none. */
  readonly select?: string | null;
  /** The rows of a TypeScript pipeline; null for none. */
  readonly rows?: readonly Row[] | null;
}

/** Fills `target` from SQL and from TypeScript, and expects of each the redacted failure that `message` tells. */
export async function failsRedacted(
  test: TestDatabase,
  type: FailureType,
  message: RegExp,
  { select = '*', rows = [ROW, ROW] }: MarkedFill = {},
): Promise<void> {
  const pipelines = [
    ...(select === null ? [] : [sqlPipeline(`SELECT ${select} FROM source WHERE day >= :date AND day < :end_date`)]),
    ...(rows === null ? [] : [typescriptPipeline(() => rows)]),
  ];
  for (const pipeline of pipelines) {
    await withWorker(test, async (database) => {
      const failure = await failsAs(fill(database, fillRequest(pipeline)), type);
      assertRedacted(failure);
      assert.match(failure.message, message);
    });
  }
}
