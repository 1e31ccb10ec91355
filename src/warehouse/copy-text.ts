import { Failure } from '../failure.js';
import type { RowValues } from '../pipeline/pipeline.js';
import type { TargetColumn } from './target.js';
import { type Refuse, valueText, type ValueType, valueType } from './value-text.js';

/** What has to be escaped or judged; half a pair is told from a whole one by `valueText`. */
const UNPLAIN = /[\\\n\r\t\0\ud800-\udfff]/;
const ESCAPED = /[\\\n\r\t]/g;
const ESCAPES: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' };
const [TAB, NEWLINE, SPACE, BACKSLASH, DELETE] = [9, 10, 32, 92, 127];
const NULL = '\\N';
/** Characters up to which a text is sooner copied here than by a call of the runtime. */
const SHORT = 64;
/** Bytes that a UTF-16 unit takes at most. */
const WIDEST = 3;

interface Field {
  readonly type: ValueType;
  readonly refuse: Refuse;
}

/**
 * Writes rows as lines of COPY's text form, in UTF-8, each value by the type of the column it goes to. undefined and null are
 * NULL. https://www.postgresql.org/docs/current/sql-copy.html#id-1.9.3.55.9.2
 *
 * Throws `DataError` naming column and row number for a value that has no exact form in the column's type.
 */
export class CopyText {
  readonly #fields: readonly Field[];
  #row = 0;
  #bytes: Buffer;
  #length = 0;

  /** `size`: bytes of room to begin with. */
  constructor(
    columns: readonly TargetColumn[],
    private readonly size: number,
  ) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
    this.#fields = columns.map((column) => ({
      type: valueType(column.baseType, column.elementType),
      refuse: (problem) => {
        throw new Failure(
          'DataError',
          `Row ${this.#row}, column ${JSON.stringify(column.name)} (${column.type}): ${problem}.`,
        );
      },
    }));
  }

  /** Bytes of whole lines that are ready. */
  get length(): number {
    return this.#length;
  }

  /** Gives the lines out of hand. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#bytes = Buffer.allocUnsafeSlow(this.size);
    this.#length = 0;
    return taken;
  }

  /** A row, its values in the columns' order. */
  add(row: RowValues, number: number): void {
    this.#row = number;
    let i = 0;
    for (const field of this.#fields) this.#add(row[i++], field);
    this.#bytes[this.#length - 1] = NEWLINE;
  }

  /** A value and what parts it from the next. */
  #add(value: unknown, { type, refuse }: Field): void {
    if (value === undefined || value === null) {
      this.#put(NULL);
    } else if (typeof value === 'string') {
      if (!this.#putPlain(value)) this.#put(escape(valueText(value, type, refuse)));
    } else {
      const text = valueText(value, type, refuse);
      if (!this.#putPlain(text)) this.#put(escape(text));
    }
    this.#bytes[this.#length++] = TAB;
  }

  /** Writes a text that needs neither a judge nor an escape; false: it may, and nothing was written. */
  #putPlain(text: string): boolean {
    const { length } = text;
    if (length > SHORT) {
      if (UNPLAIN.test(text)) return false;
      this.#put(text);
      return true;
    }
    this.#reserve(length);
    const bytes = this.#bytes;
    let at = this.#length;
    for (let i = 0; i < length; i++) {
      const code = text.charCodeAt(i);
      if (code < SPACE || code >= DELETE || code === BACKSLASH) return false;
      bytes[at++] = code;
    }
    this.#length = at;
    return true;
  }

  #put(text: string): void {
    this.#reserve(text.length * WIDEST);
    this.#length += this.#bytes.write(text, this.#length);
  }

  /** Room for so many bytes and one behind them. */
  #reserve(more: number): void {
    if (this.#length + more < this.#bytes.length) return;
    const grown = Buffer.allocUnsafeSlow(2 * (this.#length + more));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}

function escape(text: string): string {
  return text.replace(ESCAPED, (character) => ESCAPES[character] ?? character);
}
