import { PassThrough } from 'node:stream';
import type { Window } from '../calendar/calendar.js';
import { Failure } from '../failure.js';
import type { SqlPipeline } from '../pipeline/pipeline.js';
import { oneSum, type SumCheck, sumAnswers, sumChecks } from './check-sum.js';
import type { FillRequest } from './fill-request.js';
import { quotedList, quotedTable } from './identifier.js';
import { planRelay, type Relay } from './relay-columns.js';
import { quotedQuery } from './relay-query.js';
import { droppedRows } from './row-accounts.js';
import type { Destination, RowSupply, Supplied } from './row-supply.js';
import { type Session, SinkGone } from './session.js';
import { isLiteral, readSourceColumns } from './source-columns.js';
import { toSourceFailure } from './source-failure.js';
import { openSource, type SourceSession } from './source-session.js';
import { isSnapshotStale } from './stale-snapshot.js';
import type { Target } from './target.js';
import { askVersion, judgedVersion, type VersionQuery } from './version-query.js';

/** Bytes that wait between the two servers at most, beside those in sockets. */
const BETWEEN = 1 << 18;
/** Snapshots that are taken at most, since each before was older than the tables that it was to show. */
const SNAPSHOT_TRIES = 5;

/** What a fill reads from its source, ready to be sent. */
interface Relaying {
  readonly source: SourceSession;
  readonly relay: Relay;
  readonly sums: readonly { readonly place: number; readonly check: SumCheck; readonly text: string }[];
  /** How the version of what it reads is asked. Absent: the pipeline has no `changed`. */
  readonly version?: VersionQuery;
}

/**
 * The rows of a query that runs on another PostgreSQL: read there in one read-only snapshot, which is taken here, under the
 * target's locks, and streamed from its COPY into the target's at constant memory. That snapshot is no older than the tables it
 * shows: where one was truncated or written anew while it was waited for, another is taken. Throws before a row moves what either
 * server has against the query or its columns; after it, `Conflict` where that was seen only as the rows were read.
 */
export async function relaySupply(
  session: Session,
  request: FillRequest,
  pipeline: SqlPipeline,
  target: Target,
): Promise<RowSupply> {
  for (let tries = 1; tries <= SNAPSHOT_TRIES; tries++) {
    const supply = await supplyOfSnapshot(session, request, pipeline, target);
    if (supply) return supply;
  }
  throw tablesMoved();
}

/** Undefined where the snapshot that was taken is older than what it is to show. */
async function supplyOfSnapshot(
  session: Session,
  request: FillRequest,
  pipeline: SqlPipeline,
  target: Target,
): Promise<RowSupply | undefined> {
  const { window } = request;
  const query = quotedQuery(pipeline.query, window);
  const source = await openSource(request, pipeline, session.backend?.applicationName ?? 'repave');
  const judged = <T>(work: Promise<T>): Promise<T> =>
    work.catch((error: unknown) => {
      throw toSourceFailure(error, source.database, pipeline.name, { beforeRows: true });
    });
  try {
    const given = await judged(readSourceColumns(source.session, query));
    const literal = (place: number): Promise<boolean> => judged(isLiteral(source.session, query, place, given.length));
    const relay = await planRelay(session, query, literal, given, pipeline, target, quotedTable(pipeline.target));
    const sums = sumChecks(pipeline).map(({ place, check }) => ({
      place,
      check,
      text: `SELECT ${sumAnswers(quotedQuery(check.equals, window))} AS answers`,
    }));
    for (const { text } of sums) await judged(source.session.describe(text));
    const { changed } = pipeline;
    const version = changed && (await judged(judgedVersion(source.session, pipeline.name, changed)));
    // The server has waited for the tables by now, but for those that only a plan or a function names.
    if (await judged(isSnapshotStale(source.session))) {
      await source.end();
      return undefined;
    }
    const relaying = { source, relay, sums, version };
    return {
      columns: relay.columns,
      async write(into, destination) {
        const { copied, ...supplied } = await relayRows(relaying, pipeline, window, into, destination);
        if (copied !== supplied.sent) throw droppedRows(target, supplied.sent, supplied.sent - copied);
        return supplied;
      },
      close: () => source.end(),
    };
  } catch (error) {
    await source.end();
    throw error;
  }
}

/** Runs both COPYs at once. Throws what went wrong first, at whichever end; neither runs any more then. */
async function relayRows(
  { source, relay, sums, version }: Relaying,
  pipeline: SqlPipeline,
  window: Window,
  into: Session,
  { table }: Destination,
): Promise<Supplied & { readonly copied: number }> {
  const { session, database } = source;
  const between = new PassThrough({ highWaterMark: BETWEEN });
  // Broken off before either end is at it, nobody else listens, and the process would end.
  between.on('error', () => undefined);
  const found = new Map<number, string | null>();
  let sourceVersion: string | undefined;
  let fault: { readonly error: unknown } | undefined;
  const send = async (): Promise<number> => {
    try {
      for (const { place, check, text } of sums) {
        const [row] = await session.rows<{ answers: readonly (string | null)[] }>(text);
        found.set(place, oneSum(pipeline, check, row?.answers ?? []));
      }
      if (version) sourceVersion = await askVersion(session, version, window);
      const rows = await session.copyTo(`COPY (\n${relay.rows}\n) TO STDOUT (FORMAT ${relay.format})`, between);
      if (await isSnapshotStale(session)) throw tablesMoved();
      return rows;
    } catch (error) {
      if (!(error instanceof SinkGone)) fault ??= { error: toSourceFailure(error, database, pipeline.name) };
      between.destroy(new Error('The rows broke off'));
      return 0;
    }
  };
  const receive = async (): Promise<number> => {
    try {
      const statement = `COPY ${table} (${quotedList(relay.columns)}) FROM STDIN (FORMAT ${relay.format})`;
      // It waits while the source computes.
      return await into.copy(statement, between, { mayStall: true });
    } catch (error) {
      fault ??= { error };
      await session.cancel();
      return 0;
    }
  };
  const [sent, copied] = await Promise.all([send(), receive()]);
  if (fault) throw fault.error;
  // Nothing more is read: its snapshot would keep the source's dead rows.
  await session.rollback();
  return { sent, sums: found, copied, sourceVersion };
}

/** Costs no try: the next snapshot shows the tables as they are then. */
function tablesMoved(): Failure {
  return new Failure(
    'Conflict',
    'A table that the query reads was truncated, written anew or exchanged just as it was read. It is tried again.',
    { retryAfterMs: 1_000 },
  );
}
