import { createHash, randomUUID } from 'node:crypto';
import { windowOf } from '../../src/calendar/window.js';
import type { FailureType } from '../../src/contract.js';
import { Failure } from '../../src/failure.js';
import { bindParameters } from '../../src/pipeline/bind-parameters.js';
import type { RowSource, SqlPipeline, TypeScriptPipeline } from '../../src/pipeline/pipeline.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { type Database, type DatabaseOptions, openDatabase } from '../../src/warehouse/database.js';
import type { Attempt, FillRequest } from '../../src/warehouse/fill-request.js';
import type { TestDatabase } from './database.js';

/** Milliseconds after which a test says that something hangs. Never a measure of speed. */
export const HANG_LIMIT_MS = 100_000;

/**
 * Milliseconds between two looks of the watchdog that are too long for one to come: what a test holds back, or a slow machine is
 * late with, is not given up.
 */
export const NO_LOOKS_MS = 3_600_000;

/** The partition that tests fill where any will do. */
export const KEY = '2024-02-29';

type Settings = Partial<Omit<SqlPipeline, 'kind' | 'query' | 'ready'>>;

/** A SQL pipeline by days in UTC onto `target`, whose parameters are bound as those of a file are. */
export function sqlPipeline(query: string, settings: Settings = {}): SqlPipeline {
  const common = commonSettings(settings, query);
  return {
    ...common,
    kind: 'sql',
    source: settings.source,
    query: bindParameters(query, sqlTokens(query), common.partition.by),
  };
}

/** A TypeScript pipeline by days in UTC onto `target`. */
export function typescriptPipeline(
  rows: RowSource,
  settings: Settings & Pick<TypeScriptPipeline, 'columns' | 'stage'> = {},
): TypeScriptPipeline {
  const { columns, stage } = settings;
  return { ...commonSettings(settings, rows.toString()), kind: 'typescript', rows, columns, stage };
}

function commonSettings(settings: Settings, source: string) {
  return {
    name: settings.name ?? 'target',
    file: settings.file ?? 'pipelines/target',
    target: settings.target ?? { table: 'target' },
    partition: settings.partition ?? { column: 'day', by: 'day' as const, zone: 'UTC' },
    start: settings.start,
    checks: settings.checks ?? [],
    concurrency: settings.concurrency,
    retry: settings.retry ?? { attempts: 3, giveUpAfterMs: 86_400_000 },
    timeoutMs: settings.timeoutMs ?? 600_000,
    lookback: settings.lookback ?? 0,
    version: settings.version,
    allowEmpty: settings.allowEmpty ?? true,
    database: settings.database ?? 'DATABASE_URL',
    scope: settings.scope,
    skipUnchanged: settings.skipUnchanged,
    checksum: settings.checksum,
    create: settings.create,
    batch: settings.batch,
    formerly: settings.formerly,
    after: settings.after,
    fingerprint: settings.fingerprint ?? `v1:${createHash('sha256').update(source).digest('hex')}`,
  };
}

export interface RequestOptions {
  readonly key?: string;
  /** The workflow run. Default: one of its own. */
  readonly run?: string;
  readonly activity?: string;
  /** The attempt's number, or its whole place in the order. Default 1, all scheduled in one millisecond. */
  readonly attempt?: number | Attempt;
  readonly timeLeftMs?: number;
  readonly ledger?: string;
  readonly signal?: AbortSignal;
  readonly onStep?: FillRequest['onStep'];
}

/** What an activity would ask of `fill`. */
export function fillRequest(pipeline: FillRequest['pipeline'], options: RequestOptions = {}): FillRequest {
  const attempt = options.attempt ?? 1;
  return {
    pipeline,
    window: windowOf(pipeline.partition, options.key ?? KEY),
    owner: { run: options.run ?? randomUUID(), activity: options.activity ?? '1' },
    attempt: typeof attempt === 'number' ? { scheduledAt: SCHEDULED_AT + attempt, number: attempt } : attempt,
    timeLeftMs: options.timeLeftMs ?? 600_000,
    ledger: options.ledger,
    signal: options.signal ?? new AbortController().signal,
    onStep: options.onStep,
  };
}

/** When attempt 0 would have been scheduled, as Temporal's server counts. */
export const SCHEDULED_AT = Date.UTC(2024, 2, 1);

/** What gives a test's database as long as it takes: no look of the watchdog comes, and a cancel waits for the server's answer. */
export const PATIENT = { watchEveryMs: NO_LOOKS_MS, answerMs: HANG_LIMIT_MS } as const;

/** Opens the database as a worker does, by default with patience, and closes it after `use`. */
export async function withWorker<T>(
  test: TestDatabase,
  use: (database: Database) => Promise<T>,
  options: Partial<DatabaseOptions> = {},
): Promise<T> {
  const database = await openDatabase(test.url, { fills: 4, ...PATIENT, ...options });
  try {
    return await use(database);
  } finally {
    await database.close();
  }
}

/** One row of `repave.fill`. */
export interface FillRow {
  readonly key: string;
  readonly run: string;
  readonly attempt: number;
  readonly fence: number;
  readonly deleted: number;
  readonly inserted: number;
  readonly fingerprint: string;
}

/** One row of `repave.partition`. */
export interface LedgerRow {
  readonly key: string;
  readonly outcome: 'filled' | 'failed';
  readonly rows: number | null;
  readonly run: string;
  readonly attempt: number;
  readonly fence: number;
  readonly failureType: string | null;
}

/** A pipeline's committed fills, in the order of their commits on one partition. */
export async function fills(test: TestDatabase, pipeline = 'target', key?: string): Promise<FillRow[]> {
  return test.sql<FillRow & Record<string, unknown>>(
    `SELECT key, run, attempt, fence::float8 AS fence, rows_deleted::float8 AS deleted, rows_inserted::float8 AS inserted, fingerprint
       FROM repave.fill WHERE pipeline = $1 AND ($2::text IS NULL OR key = $2) ORDER BY id`,
    [pipeline, key ?? null],
  );
}

/** A pipeline's partitions as the ledger has them, by key. */
export async function ledgerRows(test: TestDatabase, pipeline = 'target'): Promise<LedgerRow[]> {
  return test.sql<LedgerRow & Record<string, unknown>>(
    `SELECT key, outcome, rows::float8 AS rows, run, attempt, fence::float8 AS fence, failure_type AS "failureType"
       FROM repave.partition WHERE pipeline = $1 ORDER BY key COLLATE "C"`,
    [pipeline],
  );
}

/** Sessions of this database that a fill of `run`, or of any run, has open. */
export async function openFills(test: TestDatabase, run = ''): Promise<number> {
  const [row] = await test.sql<{ open: number }>(
    `SELECT count(*)::int AS open FROM pg_stat_activity
      WHERE datname = current_database() AND starts_with(application_name, 'repave ' || $1)
        AND application_name ~ '^repave [^/ ]+/'`,
    [run],
  );
  return row?.open ?? 0;
}

/** What became of a fill: its outcome, or the failure it threw. Anything thrown that is no `Failure` is thrown on. */
export async function settled<T>(
  work: Promise<T>,
): Promise<
  { readonly value: T; readonly failure?: undefined } | { readonly value?: undefined; readonly failure: Failure }
> {
  try {
    return { value: await work };
  } catch (error) {
    if (error instanceof Failure) return { failure: error };
    throw error;
  }
}

/** Asserts by throwing that `work` fails as `type`, and returns the failure. */
export async function failsAs(work: Promise<unknown>, type: FailureType): Promise<Failure> {
  const end = await settled(work);
  if (!end.failure) throw new Error(`Expected the failure ${type}, and it ended well: ${JSON.stringify(end.value)}`);
  if (end.failure.type !== type) throw new Error(`Expected the failure ${type}, and it was ${describe(end.failure)}`);
  return end.failure;
}

function describe(failure: Failure): string {
  return `${failure.type}: ${failure.message}`;
}

/** Rejects, naming `what`, where `work` has not settled within the hang limit. */
export async function within<T>(what: string, work: Promise<T>, limitMs = HANG_LIMIT_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const hung = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Hangs: ${what} did not end within ${limitMs / 1000} s`)), limitMs);
  });
  try {
    return await Promise.race([work, hung]);
  } finally {
    clearTimeout(timer);
  }
}

/** Asks `ready` again and again until it answers other than undefined or false; rejects at the hang limit, naming `what`. */
export async function until<T>(
  what: string,
  ready: () => Promise<T | undefined | false>,
  limitMs = HANG_LIMIT_MS,
): Promise<T> {
  const end = Date.now() + limitMs;
  for (;;) {
    const answer = await ready();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > end) throw new Error(`Hangs: ${what} was not so within ${limitMs / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}
