import type { Window } from '../calendar/calendar.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { pinMoney, readChecksum, type SummedColumn } from './checksum.js';
import { type MeasuredWindow, measureWindows } from './count-windows.js';
import type { Database } from './database.js';
import { toFailure } from './errors.js';
import { type Differing, type Finding, markFound } from './findings.js';
import { beginLocked } from './locked-snapshot.js';
import { otherGrid, registeredFingerprint } from './registered-grid.js';
import type { Session } from './session.js';
import type { Target } from './target.js';
import { commit, type Pins } from './transaction.js';
import { withSession } from './with-session.js';

/** What to compare, and whether to record what differs. */
export interface VerifyRequest {
  readonly pipeline: Pipeline;
  /** Neighbours in the calendar's order, each one's end the next one's start. At least one. */
  readonly windows: readonly Window[];
  /** Compare, and record nothing. */
  readonly dryRun: boolean;
  readonly signal: AbortSignal;
}

/** What a comparison of some windows has come to. */
export interface Verification {
  /** Partitions that were compared. */
  readonly compared: number;
  /** How many of them by a checksum too. */
  readonly checksums: number;
  /**
   * How many have a checksum that cannot be taken again: the table lacks a column of it, or has it as another type, or a newer
   * version took it.
   */
  readonly unreadable: number;
  /** In the calendar's order. */
  readonly findings: readonly Finding[];
}

/** Milliseconds to wait for a lock on the table, such as an ALTER TABLE's, and for the ledger's rows. */
const LOCK_WAIT_MS = 30_000;
/** Milliseconds for a pass over all rows of the windows: a backstop, as a pipeline's own limit is that of one window's fill. */
const PASS_MS = 3_600_000;

/**
 * Compares what the ledger says of some windows with what the target holds, and has the ledger count those that differ as
 * missing or outdated. Ledger and table are read in one snapshot, which is taken once the table is locked against DDL, and only
 * the very fill that was looked at is marked: so a fill that commits meanwhile is neither found wanting nor undone. Compared is what was filled by the pipeline as workers have
 * it, failed since or not; what is outdated already came of another version, whose windows may have been others.
 *
 * Reads the target and writes no row of it. Throws what `readTarget` and `registeredFingerprint` throw, and what the server
 * says as a `Failure`; rejects with `request.signal.reason` once that is aborted.
 */
export async function verifyWindows(database: Database, request: VerifyRequest): Promise<Verification> {
  const { pipeline, signal } = request;
  try {
    const { fingerprint, differing, ...counts } = await withSession(database, signal, (session) =>
      compare(session, database, request),
    );
    const stand = await (request.dryRun || differing.length === 0
      ? differing
      : withSession(database, signal, (session) =>
          markFound(session, database, pins(pipeline), { pipeline: pipeline.name, fingerprint, differing }),
        ));
    return {
      ...counts,
      findings: stand.map(({ key, ledgerRows, tableRows, state }) => ({ key, ledgerRows, tableRows, state })),
    };
  } catch (error) {
    signal.throwIfAborted();
    throw toFailure(error);
  }
}

interface LedgerWindow {
  readonly key: string;
  readonly outcome: 'filled' | 'failed';
  readonly rows: number;
  /** As text: a Date would lose the microseconds. */
  readonly filledAt: string;
  readonly checksum: string | null;
}

async function compare(session: Session, database: Database, { pipeline, windows }: VerifyRequest) {
  const target = await beginLocked(session, database, pipeline, pins(pipeline));
  const fingerprint = await registeredFingerprint(session, pipeline, target);
  if (fingerprint === undefined) throw otherGrid(pipeline);
  const held = await ledgerWindows(session, pipeline, windows, fingerprint);
  const lists = columnLists(held.values(), target);
  await pinMoney(session);
  const measured = await measureWindows(
    session,
    pipeline,
    target,
    windows,
    lists.map((columns) => columns.map(([name]) => name)),
  );
  await commit(session);

  const names = lists.map((columns) => JSON.stringify(columns));
  const differing: Differing[] = [];
  let checksums = 0;
  let unreadable = 0;
  windows.forEach((window, i) => {
    const entry = held.get(window.key);
    const found = measured[i];
    if (!entry || !found) return;
    const same = sameChecksum(entry, found, names);
    if (same !== undefined) checksums++;
    else if (entry.checksum !== null) unreadable++;
    if (found.rows === entry.rows && same !== false) return;
    const { key, rows: ledgerRows, filledAt } = entry;
    const state = entry.outcome === 'failed' ? 'failed' : found.rows === 0 ? 'missing' : 'outdated';
    differing.push({ key, ledgerRows, tableRows: found.rows, state, filledAt });
  });
  return { fingerprint, compared: held.size, checksums, unreadable, differing };
}

/** What the ledger has of the windows by this fingerprint, each with the checksum of the fill that stands. */
async function ledgerWindows(
  session: Session,
  { name }: Pipeline,
  windows: readonly Window[],
  fingerprint: string,
): Promise<Map<string, LedgerWindow>> {
  const rows = await session.rows<LedgerWindow>(
    `SELECT p.key, p.outcome, p.rows::pg_catalog.float8 AS rows, p.filled_at::pg_catalog.text AS "filledAt", f.checksum
       FROM repave.partition p
       -- By its time, since the partition's run is another's once that has failed. Absent: pruned, or of an older version.
       LEFT JOIN LATERAL (SELECT checksum FROM repave.fill f
                           WHERE f.pipeline = p.pipeline AND f.key = p.key AND f.filled_at = p.filled_at
                           ORDER BY id DESC LIMIT 1) f ON true
      WHERE p.pipeline = $1 AND p.key = ANY ($2::pg_catalog.text[]) AND p.filled_at IS NOT NULL AND p.fingerprint = $3`,
    [name, windows.map(({ key }) => key), fingerprint],
  );
  return new Map(rows.map((row) => [row.key, row]));
}

/** The lists of columns that checksums were taken of, each once, where the target has them all as the types that they had. */
function columnLists(entries: Iterable<LedgerWindow>, target: Target): (readonly SummedColumn[])[] {
  const there = new Map(target.columns.map(({ name, type }) => [name, type]));
  const lists = new Map<string, readonly SummedColumn[]>();
  for (const { checksum } of entries) {
    const columns = checksum === null ? undefined : readChecksum(checksum)?.columns;
    if (columns?.every(([name, type]) => there.get(name) === type)) lists.set(JSON.stringify(columns), columns);
  }
  return [...lists.values()];
}

/** Whether the window's rows have the fill's checksum; undefined where there is none to compare. */
function sameChecksum(
  { checksum }: LedgerWindow,
  found: MeasuredWindow,
  lists: readonly string[],
): boolean | undefined {
  const kept = checksum === null ? undefined : readChecksum(checksum);
  const place = kept ? lists.indexOf(JSON.stringify(kept.columns)) : -1;
  if (!kept || place < 0) return undefined;
  return kept.digest === (found.digests?.[place] ?? '0 0 0');
}

function pins({ partition }: Pipeline): Pins {
  return {
    applicationName: 'repave verify',
    zone: partition.zone,
    lockTimeoutMs: LOCK_WAIT_MS,
    statementTimeoutMs: PASS_MS,
  };
}
