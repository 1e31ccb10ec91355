import type { Socket } from 'node:net';
import type { Database } from '../../src/warehouse/database.js';
import type { FillOutcome, FillRequest } from '../../src/warehouse/fill-request.js';
import { fill } from '../../src/warehouse/fill.js';
import type { Failure } from '../../src/failure.js';
import type { TestDatabase } from '../support/database.js';
import { settled, until, within } from '../support/fill.js';
import { type Statement, type StatementHooks, type StatementKind, withStatements } from '../support/statements.js';

/**
 * A place in a fill where it can be stopped: around a statement; in a COPY whose rows were sent and whose end was not; or in
 * its COMMIT, which the server has done and whose answer it has not read.
 */
export type Point = `before ${StatementKind}` | `after ${StatementKind}` | 'in copy' | 'in commit';

/** What becomes of a fill that was let go: it stands at a stop, has ended, or waits for a lock on the server. */
export type Rest = 'stopped' | 'ended' | 'blocked';

export interface End {
  readonly value?: FillOutcome;
  readonly failure?: Failure;
}

const unended = new Set<SteeredFill>();

/** Lets every fill that still stands at a stop go on to its end: a test that failed would else hang where it closes its databases. */
export async function thawAll(): Promise<void> {
  const left = [...unended];
  for (const each of left) each.release();
  await Promise.allSettled(left.map(async (each) => each.end()));
}

/**
 * A fill that stops at points, each the first time it comes there, and goes on when told. To the server a stopped one is a
 * frozen worker: it holds its transaction and its locks and sends nothing.
 */
export class SteeredFill {
  readonly ended: Promise<End>;
  /** Whether its claim was answered: from then on no older attempt may commit. */
  claimed = false;
  #guarded = false;
  #stops: Set<Point>;
  #credits = 0;
  #stoppedAt: Point | undefined;
  #goOn: (() => void) | undefined;
  #end: End | undefined;
  #pid: number | undefined;

  constructor(
    private readonly test: TestDatabase,
    database: Database,
    request: FillRequest,
    stops: readonly Point[],
    rewrite?: StatementHooks['rewrite'],
  ) {
    this.#stops = new Set(stops);
    this.ended = withStatements(
      {
        before: async (statement) => {
          this.#pid = processId(statement);
          await this.#pass(`before ${this.#kind(statement)}`);
          if (this.#kind(statement) === 'commit') this.#stopInCommit(statement, request.owner.run);
        },
        after: async (statement) => {
          if (statement.kind === 'claim') this.claimed = true;
          if (statement.kind === 'guard') this.#guarded = true;
          await this.#pass(`after ${this.#kind(statement)}`);
        },
        copying: async () => this.#pass('in copy'),
        rewrite,
      },
      async () => {
        this.#end = await settled(fill(database, request));
        return this.#end;
      },
    );
    unended.add(this);
    // Whoever reads it later gets the error; until then it is nobody's.
    this.ended.catch(() => undefined).finally(() => unended.delete(this));
  }

  get stoppedAt(): Point | undefined {
    return this.#stoppedAt;
  }

  /** Lets it pass one stop: the one where it stands, or the next it comes to. */
  step(): void {
    this.#credits += 1;
    this.#goOn?.();
  }

  /** Lets it pass all stops but those named here. */
  release(stops: readonly Point[] = []): void {
    this.#stops = new Set(stops);
    this.#credits = 0;
    this.step();
    this.#credits = 0;
  }

  /** Resolves once it stands at a stop, has ended, or waits for a lock on the server. */
  async rest(): Promise<Rest> {
    return until(`a fill (last seen ${this.#stoppedAt ?? 'under way'})`, async () => {
      if (this.#stoppedAt) return 'stopped';
      if (this.#end) return 'ended';
      return (await this.#isBlocked()) ? 'blocked' : undefined;
    });
  }

  /** Resolves with its end, and rejects at the hang limit. */
  async end(): Promise<End> {
    return within('a fill', this.ended);
  }

  async #pass(point: Point): Promise<void> {
    if (!this.#stops.delete(point)) return;
    this.#stoppedAt = point;
    if (this.#credits === 0) await new Promise<void>((resolve) => (this.#goOn = resolve));
    this.#credits = Math.max(0, this.#credits - 1);
    this.#goOn = undefined;
    this.#stoppedAt = undefined;
  }

  /** A fill whose rows are spooled commits twice: what it reads before its source, and what it writes. Here only the latter. */
  #kind({ kind }: Statement): StatementKind {
    return kind === 'commit' && !this.#guarded ? 'other' : kind;
  }

  /** Reads nothing that the server sends from now on, until the fill may go on. */
  #stopInCommit({ client }: Statement, run: string): void {
    if (!this.#stops.has('in commit')) return;
    const { stream } = (client as unknown as { readonly connection: { readonly stream: Socket } }).connection;
    stream.pause();
    const committed = until('the commit', async () => {
      const [row] = await this.test.sql('SELECT FROM repave.fill WHERE run = $1', [run]);
      return row !== undefined;
    });
    void committed.then(() => this.#pass('in commit')).then(() => stream.resume());
  }

  async #isBlocked(): Promise<boolean> {
    if (this.#pid === undefined) return false;
    const [row] = await this.test.sql<{ blocked: boolean }>('SELECT cardinality(pg_blocking_pids($1)) > 0 AS blocked', [
      this.#pid,
    ]);
    return row?.blocked ?? false;
  }
}

function processId({ client }: Statement): number | undefined {
  return (client as unknown as { readonly processID?: number }).processID;
}
