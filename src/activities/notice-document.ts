import { Context } from '@temporalio/activity';
import { type BackfillInput, MAX_LISTED_FAILURES, MAX_LISTED_KEYS, type Notice, shortened } from '../contract.js';
import type { Database } from '../warehouse/database.js';
import { begunBackfill, standingFill } from '../warehouse/notices.js';
import { givenUpBy } from '../warehouse/resting.js';
import type { NoticeRequest } from './messages.js';

/** What the ledger alone knows of an event. */
export type LedgerFacts = Pick<Notice, 'holds' | 'backfill' | 'resting'>;

/** Asks the ledger what it knows of an event now. Without `resting` a backfill has given up with none of its partitions. */
export async function ledgerFacts(database: Database, request: NoticeRequest): Promise<LedgerFacts> {
  const { pipeline, key } = request;
  const stands = key === undefined ? undefined : await standingFill(database, pipeline, key);
  return {
    holds: stands && { rows: stands.rows, filledAt: stands.filledAt.toISOString() },
    backfill: await backfillOf(database, request),
    resting: await restingOf(database, request),
  };
}

/** The document that says of an event what its workflow and the ledger know of it; without the ledger's part it says so. */
export function noticeDocument(request: NoticeRequest, facts: LedgerFacts | undefined): Notice {
  const { id, event, at, pipeline, key, ledger, backfill, partition, outcome, counts, paused, reason, failures } =
    request;
  return {
    id,
    event,
    at,
    namespace: Context.current().info.namespace,
    pipeline,
    key,
    ...(facts ?? { backfill, ledgerAway: ledger === undefined ? undefined : true }),
    partition,
    outcome,
    counts,
    paused,
    reason,
    failures,
  };
}

async function restingOf(database: Database, { backfill, tries }: NoticeRequest): Promise<Notice['resting']> {
  if (!backfill || tries === undefined) return undefined;
  const all = await givenUpBy(database, backfill.run, tries);
  if (all.length === 0) return undefined;
  const first = all.slice(0, MAX_LISTED_FAILURES);
  return { count: all.length, first: first.map((one) => ({ ...one, message: shortened(one.message) })) };
}

async function backfillOf(database: Database, { backfill }: NoticeRequest): Promise<Notice['backfill']> {
  if (!backfill) return undefined;
  const begun = await begunBackfill(database, backfill.run);
  if (!begun) return backfill;
  // What planBackfill has judged and kept.
  const input = begun.input as BackfillInput;
  return {
    ...backfill,
    startedBy: begun.startedBy ?? undefined,
    input: input.keys ? { ...input, keys: input.keys.slice(0, MAX_LISTED_KEYS) } : input,
  };
}
