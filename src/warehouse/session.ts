import pg from 'pg';
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { pipeline as pipe } from 'node:stream/promises';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import { abortable } from './abortable.js';
import type { Database } from './database.js';
import { Describe, type DescribedColumn } from './describe-statement.js';
import { endBackend } from './end-backends.js';
import { Watchdog } from './watchdog.js';

/** Milliseconds a statement may take to end once it is cancelled and its backend, where that is known, has gone. */
const SETTLE_MS = 1_000;

/** The backend behind a session, as SQL in its own transaction names it: through a pooler the driver's number is not it. */
export interface Backend {
  readonly pid: number;
  /** As text: a Date would lose the microseconds. */
  readonly startedAt: string;
  readonly applicationName: string;
}

/** Nothing takes a COPY's rows any more. */
export class SinkGone extends Error {}

/**
 * One connection while a fill holds it. What the server or the network does to it ends this session's statement with an
 * error and nothing else: never the process, never another fill's.
 */
export class Session {
  readonly #client: pg.PoolClient;
  readonly #database: Database;
  readonly #onError: (error: Error) => void;
  /** The first thing that went wrong with the connection; a backend ended between two statements says its SQLSTATE only here. */
  #lost: Error | undefined;
  #broken = false;
  #running: Promise<unknown> | undefined;
  #released = false;
  #cancelled = false;
  /** A cancel ends its backend, which rolls back. */
  #ending = false;
  #starves: (() => boolean) | undefined;
  /** Known once its transaction has begun and is named. */
  backend: Backend | undefined;

  constructor(client: pg.PoolClient, database: Database) {
    this.#client = client;
    this.#database = database;
    this.#onError = (error) => {
      this.#lost ??= error;
    };
    // A checked-out client without a listener takes the whole process down when its backend is ended.
    client.on('error', this.#onError);
  }

  /** Runs one statement. Rejects with the driver's error; `toFailure` says what it means. */
  async query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<pg.QueryResult<Row>> {
    return this.#run(() => this.#client.query<Row>(text, [...values]));
  }

  /** The rows of one statement. */
  async rows<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return (await this.query<Row>(text, values)).rows;
  }

  /** Parses a statement on the server and says its result's columns, without planning or running it. */
  async describe(text: string): Promise<readonly DescribedColumn[]> {
    return this.#run(() => {
      const statement = new Describe(text);
      this.#client.query(statement);
      return statement.columns;
    });
  }

  /**
   * Streams text into `COPY … FROM STDIN` and returns the server's count of rows. Where the text breaks off, the server is
   * told so and writes none of them. `mayStall`: text that is long in coming is no sign of a dead connection.
   */
  async copy(statement: string, text: Readable, { mayStall = false } = {}): Promise<number> {
    return this.#run(async () => {
      const stream = this.#client.query(copyFrom(statement));
      if (mayStall) {
        this.#starves = () =>
          !stream.destroyed &&
          !stream.writableEnded &&
          stream.writableLength === 0 &&
          this.#socket.writableLength === 0;
      }
      try {
        await pipe(text, stream);
      } finally {
        this.#starves = undefined;
      }
      return stream.rowCount ?? 0;
    });
  }

  /**
   * Streams the bytes of `COPY … TO STDOUT` into `sink`, no faster than it takes them, ends it, and returns the server's count
   * of rows. Rejects with what went wrong at this end; with `SinkGone` where the sink was destroyed first: then the server
   * still sends, and the session is to be cancelled.
   */
  async copyTo(statement: string, sink: Writable): Promise<number> {
    return this.#run(async () => {
      const stream = this.#client.query(copyTo(statement));
      let failed: Error | undefined;
      stream.on('error', (error) => {
        if (sink.destroyed) return;
        failed ??= error;
        // The sink may pass its reason on, and the server's words may hold values of rows.
        sink.destroy(new Error('The rows broke off'));
      });
      this.#starves = () => sink.writableNeedDrain || sink.writableEnded || sink.destroyed;
      try {
        await pipe(stream, sink);
      } catch {
        throw failed ?? new SinkGone();
      } finally {
        this.#starves = undefined;
      }
      // The count comes behind the rows: once the next statement is answered it has come.
      await this.#client.query('');
      return stream.rowCount;
    });
  }

  async #run<T>(statement: () => Promise<T>): Promise<T> {
    if (this.#lost) throw this.#lost;
    if (this.#cancelled) throw new Error('The session was cancelled');
    return this.#watched(statement);
  }

  async #watched<T>(statement: () => Promise<T>): Promise<T> {
    const watchdog = new Watchdog(this.#database, this);
    try {
      const running = statement();
      this.#running = running;
      return await running;
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) this.#broken = true;
      // The connection's own error names the cause; the statement's says only that the connection is gone.
      throw error instanceof pg.DatabaseError ? error : (this.#lost ?? error);
    } finally {
      watchdog.stop();
      this.#running = undefined;
    }
  }

  /**
   * Ends this session: its backend, so that no query of it runs and no lock of it is held when this resolves, and then its
   * statement, which rejects. Ended and not cancelled, since a COPY that waits for us hears no cancel, and a cancel that
   * comes late would hit another statement. Where the backend is not known yet, its statement ends by itself at once.
   * Never throws: a backend that cannot be reached from here is `endFill`'s to end.
   */
  async cancel(): Promise<void> {
    this.#cancelled = true;
    this.#broken = true;
    if (this.#released) return;
    const running = this.#running;
    try {
      if (this.backend) {
        this.#ending = true;
        await endBackend(this.#database, this.backend);
      }
      await abortable(Promise.resolve(running), AbortSignal.timeout(SETTLE_MS));
    } catch {
      // The statement's own failure, or none of it, in time.
    }
    if (running && this.#running === running) this.destroy(new Error('The connection was closed by a cancel'));
  }

  /** Whether the other end of what it copies is waited for: to give rows, or to take them. */
  get starves(): boolean {
    return this.#starves?.() ?? false;
  }

  /** Closes the socket now: the statement that waits rejects, and the server rolls back. */
  destroy(reason: Error): void {
    this.#broken = true;
    this.#lost ??= reason;
    this.#socket.destroy(reason);
  }

  /** Bytes sent and got so far, by which a COPY that goes on is told from one that stands. */
  get traffic(): number {
    return this.#socket.bytesWritten + this.#socket.bytesRead;
  }

  get #socket(): Socket {
    return (this.#client as unknown as { connection: { stream: Socket } }).connection.stream;
  }

  /** Rolls back where the connection can still say so. Never throws: a connection that cannot is closed by `release`. */
  async rollback(): Promise<void> {
    if (this.#lost || this.#released) return;
    // One that was not known yet when it was cancelled is still there, and may hold locks.
    if (this.#ending) return;
    try {
      await this.#watched(() => this.#client.query('ROLLBACK'));
    } catch {
      this.#broken = true;
    }
  }

  /** Gives the connection back, or closes it after a cancel or a loss: a cancel that comes late would hit its next user. */
  release(): void {
    if (this.#released) return;
    this.#released = true;
    this.#client.removeListener('error', this.#onError);
    // The pool listens again only after release; between the two an error must still find someone.
    if (this.#broken || this.#lost) this.#client.on('error', () => undefined);
    this.#client.release(this.#broken || this.#lost !== undefined);
  }
}
