import { keyAt } from '../calendar/range.js';
import { windowOf } from '../calendar/window.js';
import { lastClockChange } from '../calendar/zone.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { PARTITION_TYPES, type PartitionType } from './partition-type.js';
import type { TargetColumn } from './target.js';
import type { CatalogRow } from './target-catalog.js';

const HOUR_MS = 3_600_000;
/** From where a pipeline without a `start` is held to its zone's clock: before, every zone's has changed once. */
const EPOCH = '1970-01-01T00:00:00Z';

/**
 * Why fills of a table of this kind could not keep the promises, every reason: `InvalidPipeline`, or `SchemaMismatch` for rules.
 */
export function unsafeReasons(row: CatalogRow, pipeline: string, target: string): Failure[] {
  const reasons: Failure[] = [];
  const refuse = (reason: string): void => {
    reasons.push(new Failure('InvalidPipeline', `The target ${target} of ${pipeline} ${reason}`));
  };
  if (row.kind === 'v' || row.kind === 'm') refuse('is a view: name the table itself.');
  else if (row.foreign) refuse('is or holds a foreign table: its rows would not commit together with the ledger.');
  else if (row.kind !== 'r' && row.kind !== 'p') refuse('is no table.');
  if (row.unlogged)
    refuse('is UNLOGGED: a crash would empty it and the ledger would still say filled. ALTER TABLE … SET LOGGED.');
  if (row.temporary) refuse('is a temporary table.');
  if (row.inherits) {
    refuse('takes part in table inheritance: a DELETE would reach other tables. Use declarative partitioning.');
  }
  if (row.rules.length > 0) {
    reasons.push(
      new Failure(
        'SchemaMismatch',
        `The target ${target} of ${pipeline} has rules on INSERT or DELETE (${row.rules.join(', ')}): they do something else with a fill's rows, or read its query once more, and a fill could not tell what became of them. The old rows stand. Drop them, or use triggers.`,
      ),
    );
  }
  if (row.cascades.length > 0) {
    refuse(
      `is referenced by foreign keys that cascade (${row.cascades.join(', ')}): each fill would delete or change the rows that refer to it. ` +
        'Make them ON DELETE NO ACTION DEFERRABLE INITIALLY DEFERRED.',
    );
  }
  return reasons;
}

/**
 * The type of the partition column. Throws `SchemaMismatch` where the table lacks it, `InvalidPipeline` where it is of a type
 * that holds no time, or where two windows of the calendar would be one range of its values.
 */
export function partitionType(columns: readonly TargetColumn[], pipeline: Pipeline, target: string): PartitionType {
  const { column } = pipeline.partition;
  const found = columns.find(({ name }) => name === column);
  if (!found) {
    throw new Failure(
      'SchemaMismatch',
      `The target ${target} has no column ${JSON.stringify(column)}, by which ${pipeline.name} is partitioned. It has: ${columns.map(({ name }) => name).join(', ')}.`,
    );
  }
  const type = PARTITION_TYPES.find((known) => known === found.baseType);
  if (!type) {
    throw new Failure(
      'InvalidPipeline',
      `The partition column ${JSON.stringify(column)} of ${target} is of type ${found.type}: expected date, timestamp or timestamptz.`,
    );
  }
  refuseAmbiguous(pipeline, type);
  return type;
}

/** Two windows must never be one range of the column's values. */
function refuseAmbiguous(pipeline: Pipeline, type: PartitionType): void {
  const { by, zone } = pipeline.partition;
  if (by !== 'hour' || type === 'timestamptz') return;
  if (type === 'date') {
    throw new Failure(
      'InvalidPipeline',
      `${pipeline.name} is by hour, and its partition column is a date: all hours of a day would be one. Use a timestamptz column.`,
    );
  }
  const since = pipeline.start === undefined ? EPOCH : windowOf({ by, zone }, pipeline.start).start;
  const last = lastClockChange(zone);
  if (last === undefined || last <= Date.parse(since)) return;
  const later =
    last < Date.now()
      ? `, or a \`start\` of ${keyAt({ by, zone }, new Date(last + HOUR_MS - 1).toISOString())} or later, since when it has not changed`
      : '';
  throw new Failure(
    'InvalidPipeline',
    `${pipeline.name} is by hour in ${zone}, whose clock changes (looked at from ${since} to 2100), and its partition column is a timestamp without time zone: where the clock goes back, two hours would be one. Use timestamptz, or zone: UTC${later}.`,
  );
}
