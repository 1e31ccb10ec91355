import { Failure } from '../failure.js';
import type { Check, Pipeline } from '../pipeline/pipeline.js';
import { checkName } from './check-name.js';
import type { Target } from './target.js';

/** The pipeline's checks on a column that the target lacks: `SchemaMismatch`, before a row moves. */
export function refuseUnknownColumns(pipeline: Pipeline, target: Target): void {
  for (const check of pipeline.checks) {
    for (const column of checkedColumns(check)) {
      if (target.columns.some(({ name }) => name === column)) continue;
      throw new Failure(
        'SchemaMismatch',
        `The check ${checkName(check)} of ${pipeline.name} names the column ${JSON.stringify(column)}, which ${target.name} does not have.`,
      );
    }
  }
}

/** The target's columns that a check names; what a query of its own reads is not among them. */
export function checkedColumns(check: Check): readonly string[] {
  switch (check.kind) {
    case 'unique':
    case 'not_null':
      return check.columns;
    case 'accepted':
    case 'range':
    case 'sum':
      return [check.column];
    case 'rows':
    case 'change':
    case 'sql':
      return [];
    default:
      return check satisfies never;
  }
}
