import { Failure } from '../failure.js';
import type { Target, TargetColumn } from './target.js';

/**
 * Holds the columns that a pipeline writes against the target's. Throws `SchemaMismatch`, naming every column that is wrong,
 * before a row moves: one the target lacks, one given twice, one that cannot be written, a NOT NULL one left out, or
 * the partition column left out where the table does not work it out itself.
 */
export function refuseMismatch(
  pipeline: string,
  written: readonly string[],
  target: Pick<Target, 'name' | 'columns'>,
  partitionColumn: string,
): void {
  const problems: string[] = [];
  const known = new Map(target.columns.map((column) => [column.name, column]));
  const has = target.columns.map(({ name }) => name).join(', ');
  for (const [i, name] of written.entries()) {
    const column = known.get(name);
    if (!column) problems.push(`column ${JSON.stringify(name)} is not in ${target.name} (which has ${has})`);
    else if (written.indexOf(name) !== i) problems.push(`column ${JSON.stringify(name)} is given twice`);
    else if (column.generated)
      problems.push(`column ${JSON.stringify(name)} of ${target.name} is generated and cannot be written`);
  }
  for (const { name } of missingColumns(written, target, partitionColumn)) {
    problems.push(
      name === partitionColumn
        ? `the partition column ${JSON.stringify(name)} is not given`
        : `column ${JSON.stringify(name)} of ${target.name} is NOT NULL and is not given`,
    );
  }
  if (problems.length > 0)
    throw new Failure(
      'SchemaMismatch',
      `The rows of ${pipeline} do not fit its target: ${problems.join('; ')}. The old rows stand.`,
    );
}

/**
 * The target's columns that rows must have and lack: those that are NOT NULL without a default, and the partition column; but
 * for those that the table works out itself.
 */
export function missingColumns(
  written: readonly string[],
  target: Pick<Target, 'columns'>,
  partitionColumn: string,
): TargetColumn[] {
  return target.columns.filter(({ name, notNull, hasDefault, generated }) => {
    if (generated || written.includes(name)) return false;
    return name === partitionColumn || (notNull && !hasDefault);
  });
}
