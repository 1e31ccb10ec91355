import type { Window } from '../calendar/calendar.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { quotedList } from './identifier.js';
import { insertText } from './insert.js';
import { parameterValues } from './parameter-values.js';
import type { Target } from './target.js';
import type { WindowCondition } from './window-condition.js';

/** What a fill of one partition sends. */
export interface SampleFill {
  readonly key: string;
  readonly statements: readonly SampleStatement[];
}

export interface SampleStatement {
  /** As it is sent: `$1`, `$2`, … stand for the parameters, which are bound. */
  readonly sql: string;
  readonly parameters: readonly { readonly name: string; readonly type: string; readonly value: string }[];
  /** The variable that names the server it is sent to; absent: the target's. */
  readonly at?: string;
}

/** The statements by which a fill replaces a window's rows, without those that lock, count, check and record. */
export function sampleFill(
  pipeline: Pipeline,
  target: Pick<Target, 'partitionType' | 'columns'>,
  window: Window,
  condition: WindowCondition,
  written: readonly string[] | undefined,
): SampleFill {
  const { table, values } = condition;
  const [lower, upper, ...scope] = values;
  const scoped = Object.keys(pipeline.scope ?? {});
  const remove: SampleStatement = {
    sql: `DELETE FROM ${table} WHERE ${condition.condition}`,
    parameters: [
      { name: 'lower', type: target.partitionType, value: lower },
      { name: 'upper', type: target.partitionType, value: upper },
      ...scope.map((value, i) => ({ name: scoped[i] ?? '', type: typeOf(target, scoped[i]), value })),
    ],
  };
  const copy: SampleStatement[] = written
    ? [{ sql: `COPY ${table} (${quotedList(written)}) FROM STDIN`, parameters: [] }]
    : [];
  if (pipeline.kind === 'typescript') return { key: window.key, statements: [remove, ...copy] };
  const { text, parameters, slots } = pipeline.query;
  const bound = parameterValues(parameters, window).map((value, i) => {
    const name = parameters[i] ?? '';
    return { name, type: slots.find((slot) => slot.name === name)?.type.replace('pg_catalog.', '') ?? '', value };
  });
  if (pipeline.source !== undefined)
    return {
      key: window.key,
      statements: [remove, { sql: text, parameters: bound, at: pipeline.source }, ...copy],
    };
  const insert = written ? insertText(pipeline, written, table).trimEnd() : text;
  return { key: window.key, statements: [remove, { sql: insert, parameters: bound }] };
}

function typeOf({ columns }: Pick<Target, 'columns'>, name: string | undefined): string {
  return columns.find((column) => column.name === name)?.type ?? '';
}
