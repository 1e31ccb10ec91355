import type { Window } from '../calendar/calendar.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { quoted, quotedTable } from './identifier.js';
import { bounds } from './partition-type.js';
import type { Target } from './target.js';

/** The rows of one fill in SQL: the condition that they meet, and its bound values $1, $2, … */
export interface WindowCondition {
  readonly table: string;
  readonly condition: string;
  /** The part of the condition that is about time. */
  readonly time: string;
  /** The window's bounds come first. A statement's own values begin behind the last. */
  readonly values: readonly [lower: string, upper: string, ...scope: string[]];
}

/**
 * The rows that a fill of the window owns: those of its time, by values of the partition column's own type, and of its scope.
 * A scope's values have no cast: beside a column the server reads each as of that column's type, without the length that a
 * cast to it would cut a value to.
 */
export function windowCondition(
  pipeline: Pick<Pipeline, 'target' | 'partition' | 'scope'>,
  target: Pick<Target, 'partitionType'>,
  window: Window,
): WindowCondition {
  const column = quoted(pipeline.partition.column);
  const type = `pg_catalog.${target.partitionType}`;
  const time = `${column} >= $1::${type} AND ${column} < $2::${type}`;
  const scope = Object.entries(pipeline.scope ?? {});
  return {
    table: quotedTable(pipeline.target),
    condition: [time, ...scope.map(([name], i) => `${quoted(name)} = $${i + 3}`)].join(' AND '),
    time,
    values: [...bounds(window, target.partitionType), ...scope.map(([, value]) => value)],
  };
}
