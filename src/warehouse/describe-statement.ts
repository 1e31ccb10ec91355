import type { Connection, FieldDef, Submittable } from 'pg';

export interface DescribedColumn {
  readonly name: string;
  readonly typeId: number;
  /** The type's modifier, such as a length, in the type's own encoding; -1 for none. */
  readonly modifier: number;
}

/**
 * Asks the server to Parse one statement and describe its result: the server's own verdict on syntax, names and types,
 * before a row is read. Nothing is planned or run. (The driver has no call for it; a `Submittable` is its way in, as for
 * pg-cursor.) https://www.postgresql.org/docs/current/protocol-flow.html#PROTOCOL-FLOW-EXT-QUERY
 */
export class Describe implements Submittable {
  /** Settles once the server is ready again. */
  readonly columns: Promise<readonly DescribedColumn[]>;
  readonly #text: string;
  #found: DescribedColumn[] = [];
  #error: Error | undefined;
  #resolve!: (columns: readonly DescribedColumn[]) => void;
  #reject!: (error: Error) => void;

  constructor(text: string) {
    this.#text = text;
    this.columns = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  submit(connection: Connection): void {
    connection.parse({ name: '', text: this.#text, types: [] }, true);
    connection.describe({ type: 'S', name: '' }, true);
    connection.sync();
  }

  handleRowDescription(message: { fields: FieldDef[] }): void {
    this.#found = message.fields.map((field) => ({
      name: field.name,
      typeId: field.dataTypeID,
      modifier: field.dataTypeModifier,
    }));
  }

  handleError(error: Error): void {
    this.#error ??= error;
    // After a lost connection the server is never ready again.
    this.#reject(error);
  }

  handleReadyForQuery(): void {
    if (this.#error) this.#reject(this.#error);
    else this.#resolve(this.#found);
  }
}
