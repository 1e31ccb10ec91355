import { Failure } from '../failure.js';
import type { Row, RowValues, TypeScriptPipeline } from '../pipeline/pipeline.js';
import { refuseMismatch } from './columns.js';
import { CopyText } from './copy-text.js';
import { counted } from './counted.js';
import type { Target } from './target.js';

/** The keys of one row after another, in the order in which they come, and the column that each is. */
interface Shape {
  readonly keys: readonly string[];
  readonly places: readonly number[];
}

/**
 * Takes what a pipeline's code yields as rows, and counts them. The columns are the pipeline's, else the keys of the first
 * row: known from then on.
 */
export class RowLines {
  /** Rows taken. */
  rows = 0;
  /** The columns written, in COPY's order; undefined until they are known. */
  columns: readonly string[] | undefined;
  #text: CopyText | undefined;
  /** Of the last row that was looked at closely: most rows are like the one before. */
  #shape: Shape = { keys: [], places: [] };
  /** The values of one row in the columns' order; used again for the next. */
  #values: unknown[] = [];

  /** `size`: bytes of room. Throws `SchemaMismatch` where the target does not take the pipeline's columns. */
  constructor(
    private readonly pipeline: TypeScriptPipeline,
    private readonly target: Target,
    private readonly size: number,
  ) {
    if (pipeline.columns) this.#resolve(pipeline.columns);
  }

  /** Bytes of the rows' lines that are ready. */
  get length(): number {
    return this.#text?.length ?? 0;
  }

  /** Gives the lines out of hand. */
  take(): Buffer {
    return this.#text?.take() ?? Buffer.alloc(0);
  }

  /**
   * Adds one row. Throws `SchemaMismatch` for one that does not fit the columns, `DataError` for what is no row and for a
   * value that cannot be stored: each names the row's number.
   */
  add(row: unknown): void {
    const number = this.rows + 1;
    if (typeof row !== 'object' || row === null) {
      throw new Failure(
        'DataError',
        `Row ${number} of ${this.pipeline.name} is ${row === null || row === undefined ? String(row) : `a ${typeof row}`}: expected an object with a key a column, or, with \`columns\`, an array.`,
      );
    }
    if (Array.isArray(row)) {
      this.#refuseLength(row, number);
      this.#text?.add(row, number);
    } else {
      const text = this.#text ?? this.#resolve(Object.keys(row));
      text.add(this.#valuesOf(row as Row, number), number);
    }
    this.rows = number;
  }

  #resolve(names: readonly string[]): CopyText {
    const { target, pipeline } = this;
    refuseMismatch(pipeline.name, names, target, pipeline.partition.column);
    const columns = names.flatMap((name) => target.columns.filter((column) => column.name === name));
    this.columns = names;
    this.#text = new CopyText(columns, this.size);
    return this.#text;
  }

  #valuesOf(row: Row, number: number): RowValues {
    const { keys, places } = this.#shape;
    let i = 0;
    // The loop reads names and values in one; a list of each row's keys would cost as much as the row.
    for (const key in row) {
      const place = places[i];
      if (place === undefined || keys[i++] !== key) return this.#lookAt(row, number);
      this.#values[place] = row[key];
    }
    return i === keys.length ? this.#values : this.#lookAt(row, number);
  }

  /** A row that is not like the one before it. What it inherits is no column of it. */
  #lookAt(row: Row, number: number): RowValues {
    const { columns = [], pipeline } = this;
    const keys = Object.keys(row);
    const places = keys.map((key) => columns.indexOf(key));
    const other = places.indexOf(-1);
    if (other >= 0) {
      throw new Failure(
        'SchemaMismatch',
        `Row ${number} of ${pipeline.name} has the key ${JSON.stringify(keys[other])}: the columns written are ${columns.join(', ')} (by \`columns\`, else by the first row).`,
      );
    }
    this.#shape = { keys, places };
    this.#values = columns.map((name) => (Object.hasOwn(row, name) ? row[name] : undefined));
    return this.#values;
  }

  #refuseLength(row: RowValues, number: number): void {
    const { columns, name } = this.pipeline;
    if (!columns) {
      throw new Failure(
        'SchemaMismatch',
        `Row ${number} of ${name} is an array, and the pipeline has no \`columns\` that say what its values are: give them, or yield objects.`,
      );
    }
    if (row.length !== columns.length) {
      throw new Failure(
        'SchemaMismatch',
        `Row ${number} of ${name} is an array of ${counted(row.length, 'value')}: expected ${columns.length}, one for each of ${columns.join(', ')}.`,
      );
    }
  }
}
