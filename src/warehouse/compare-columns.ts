import { type SelectedColumn, selectedAt, type QueryColumns } from '../pipeline/query-columns.js';
import { missingColumns } from './columns.js';
import { loss } from './lossy-casts.js';
import type { PipelineProblem, PipelineWarning } from './pipeline-problem.js';
import type { SourceColumn } from './source-columns.js';
import type { Target, TargetColumn } from './target.js';

/** How a query's column comes into the target's: as it is, or by a cast that the INSERT makes by itself. */
export type CastKind = 'same' | 'implicit' | 'assignment' | 'lossy';

/** A column of a query beside the target's column of its name. */
export interface ComparedColumn {
  readonly name: string;
  /** The query's; `unknown` for a bare text or NULL, which is read as of the target's type. */
  readonly type: string;
  /** Absent where the target has no such column. */
  readonly targetType?: string;
  /** Absent where there is no such cast. */
  readonly cast?: CastKind;
}

interface NamedColumn {
  readonly name: string;
}

/** A column of the query and the target's column into which a fill writes it. */
export interface ColumnPair<Column extends NamedColumn = SourceColumn> {
  readonly index: number;
  readonly column: Column;
  readonly into: TargetColumn;
  readonly selected?: SelectedColumn;
}

/** What stands where in a comparison of names. */
export interface NamedColumns<Column extends NamedColumn> {
  /** The columns that can be written. */
  readonly pairs: readonly ColumnPair<Column>[];
  readonly problems: readonly PipelineProblem[];
}

/**
 * Holds a query's columns against the target's by name: every one that is wrong, at its place. A NOT NULL column that is left
 * out stands at the SELECT.
 */
export function compareNames<Column extends NamedColumn>(
  columns: readonly Column[],
  target: Pick<Target, 'name' | 'columns'>,
  partitionColumn: string,
  selected: QueryColumns,
): NamedColumns<Column> {
  const known = new Map(target.columns.map((column) => [column.name, column]));
  const problems: PipelineProblem[] = [];
  const pairs: ColumnPair<Column>[] = [];
  const place = (index: number, name: string) => ({ kind: 'column', index, of: columns.length, name }) as const;
  const names = columns.map(({ name }) => name);
  for (const [index, column] of columns.entries()) {
    const { name } = column;
    const into = known.get(name);
    const wrong = (message: string): void => {
      problems.push({ type: 'SchemaMismatch', message, place: place(index, name) });
    };
    if (!into) {
      const has = target.columns.map((other) => other.name).join(', ');
      wrong(
        `The column ${JSON.stringify(name)} is not in ${target.name}, which has: ${has}. Name it as one of these, or leave it out.`,
      );
    } else if (names.indexOf(name) !== index)
      wrong(`The column ${JSON.stringify(name)} is given twice. Leave one out.`);
    else if (into.generated)
      wrong(`The column ${JSON.stringify(name)} of ${target.name} is generated and cannot be written. Leave it out.`);
    else pairs.push({ index, column, into, selected: selectedAt(selected, index, columns.length, name) });
  }
  return { pairs, problems: [...problems, ...missingProblems(names, target, partitionColumn)] };
}

function missingProblems(
  names: readonly string[],
  target: Pick<Target, 'name' | 'columns'>,
  partitionColumn: string,
): PipelineProblem[] {
  return missingColumns(names, target, partitionColumn).map(({ name }) => ({
    type: 'SchemaMismatch',
    message:
      name === partitionColumn
        ? `The partition column ${JSON.stringify(name)} of ${target.name} is not given. Add it to the rows.`
        : `The column ${JSON.stringify(name)} of ${target.name} is NOT NULL and is not given. Add it to the rows, or give it a default.`,
    place: { kind: 'select' },
  }));
}

/** A warning for each cast that can lose something, at its column. */
export function lossWarning({ index, column, into }: ColumnPair, of: number): PipelineWarning | undefined {
  const lost = loss({ name: column.typeName, text: column.type }, { name: into.baseType, text: into.type });
  if (lost === undefined) return undefined;
  return {
    message: `${JSON.stringify(column.name)}: ${column.type} into ${into.type} ${lost}. Cast it in the query if that is meant.`,
    place: { kind: 'column', index, of, name: column.name },
  };
}
