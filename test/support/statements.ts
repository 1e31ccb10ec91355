import { AsyncLocalStorage } from 'node:async_hooks';
import type { Writable } from 'node:stream';
import pg from 'pg';

/** What a statement of a fill is for, told by its text; in the order of the protocol. */
export type StatementKind =
  | 'claim'
  | 'begin'
  | 'pins'
  | 'catalog'
  | 'newest'
  | 'lock'
  | 'look'
  | 'describe'
  | 'delete'
  | 'kept'
  | 'insert'
  | 'copy'
  | 'self-read'
  | 'constraints'
  | 'count'
  | 'guard'
  | 'commit'
  | 'rollback'
  | 'end-backends'
  | 'other';

const KINDS: readonly (readonly [StatementKind, RegExp])[] = [
  ['claim', /INSERT INTO repave\.claim/],
  ['begin', /^BEGIN/],
  ['guard', /INSERT INTO repave\.fill/],
  ['end-backends', /pg_terminate_backend/],
  ['pins', /pg_stat_get_activity/],
  ['catalog', /pg_partition_root/],
  ['look', /json_build_object\('fence'/],
  ['newest', /FROM repave\.fill/],
  ['lock', /pg_advisory_xact_lock_shared/],
  ['self-read', /AccessShareLock/],
  ['constraints', /^SET CONSTRAINTS/],
  ['kept', /^SELECT EXISTS \(SELECT FROM/],
  ['count', /AS inside/],
  ['delete', /^(WITH [^]*)?DELETE FROM/],
  ['insert', /^(WITH repave_inserted AS \(\s*)?INSERT INTO/],
  ['copy', /^COPY .* FROM STDIN/],
  ['commit', /^COMMIT/],
  ['rollback', /^ROLLBACK$/],
];

/** One statement on its way to the server. */
export interface Statement {
  readonly kind: StatementKind;
  readonly text: string;
  readonly values: readonly unknown[];
  /** The connection it goes over. */
  readonly client: pg.Client;
  /** How many statements were sent under these hooks before it. */
  readonly index: number;
}

/** What a test does to the statements that `work` sends. All of it lives in the test process; the product has no switches. */
export interface StatementHooks {
  /** Awaited before the statement is sent. What it throws stands for the connection's answer. */
  readonly before?: (statement: Statement) => Promise<void> | void;
  /** Awaited after the statement has succeeded and its answer was read. */
  readonly after?: (statement: Statement) => Promise<void> | void;
  /** Awaited in a COPY after all rows were sent and before the message that ends it. */
  readonly copying?: (statement: Statement) => Promise<void> | void;
  /** Other SQL to send instead, for a broken variant; undefined leaves it. */
  readonly rewrite?: (
    statement: Statement,
  ) => { readonly text: string; readonly values: readonly unknown[] } | undefined;
}

interface Context {
  readonly hooks: StatementHooks;
  sent: number;
}

const contexts = new AsyncLocalStorage<Context>();

/**
 * Runs `work` with hooks on every statement it sends through node-postgres, on whichever connection. Statements of work
 * outside are left alone, so two attempts in one process are each steered by their own hooks.
 */
export function withStatements<T>(hooks: StatementHooks, work: () => Promise<T>): Promise<T> {
  install();
  return contexts.run({ hooks, sent: 0 }, work);
}

/** Runs `work` without the hooks around it: for what a hook itself asks of a database. */
export function unhooked<T>(work: () => Promise<T>): Promise<T> {
  return contexts.exit(work);
}

export function kindOf(text: string): StatementKind {
  const trimmed = text.trimStart();
  return KINDS.find(([, pattern]) => pattern.test(trimmed))?.[0] ?? 'other';
}

/** The parts of node-postgres that stand in for a statement: streams and the like. */
interface Submittable {
  text?: string;
  submit(connection: unknown): void;
  handleError(error: Error, connection?: unknown): void;
}

type Query = (this: pg.Client, ...args: unknown[]) => unknown;

let original: Query | undefined;

function install(): void {
  if (original) return;
  const send = Reflect.get(pg.Client.prototype, 'query') as Query;
  original = send;
  const hooked: Query = function (this: pg.Client, ...args) {
    const context = contexts.getStore();
    if (!context) return send.apply(this, args);
    const [what, values, callback] = args;
    if (typeof what === 'string') {
      const given = Array.isArray(values) ? (values as unknown[]) : [];
      const statement = next(context, kindOf(what), what, given, this);
      const done = typeof values === 'function' ? values : callback;
      const answer = sendText(send, context.hooks, statement);
      if (typeof done !== 'function') return answer;
      const settle = done as (error: unknown, result?: unknown) => void;
      answer.then(
        (result) => settle(undefined, result),
        (error: unknown) => settle(error),
      );
      return undefined;
    }
    return send.call(this, submitted(context, what as Submittable, this), ...args.slice(1));
  };
  pg.Client.prototype.query = hooked as unknown as typeof pg.Client.prototype.query;
}

function next(context: Context, kind: StatementKind, text: string, values: readonly unknown[], client: pg.Client) {
  return { kind, text, values, client, index: context.sent++ } satisfies Statement;
}

async function sendText(send: Query, hooks: StatementHooks, statement: Statement): Promise<unknown> {
  await hooks.before?.(statement);
  const { text, values } = hooks.rewrite?.(statement) ?? statement;
  const result = await (send.call(statement.client, text, [...values]) as Promise<unknown>);
  await hooks.after?.(statement);
  return result;
}

/** Holds a COPY or a Parse back before it is submitted, and a COPY once more before its end. */
function submitted(context: Context, query: Submittable, client: pg.Client): Submittable {
  const text = query.text ?? '';
  const statement = next(context, query.text === undefined ? 'describe' : kindOf(text), text, [], client);
  const { before, copying } = context.hooks;
  const submit = query.submit.bind(query);
  if (before) {
    query.submit = (connection) => {
      void (async () => before(statement))().then(
        () => submit(connection),
        (error: unknown) => query.handleError(error as Error, connection),
      );
    };
  }
  if (copying && statement.kind === 'copy') {
    const stream = query as unknown as Writable;
    const final = stream._final.bind(stream);
    stream._final = (callback) => {
      // The connection may be gone by then: what `final` throws is the stream's, as it is where streams call it.
      void (async () => copying(statement))()
        .then(() => final(callback))
        .catch((error: unknown) => callback(error as Error));
    };
  }
  return query;
}
