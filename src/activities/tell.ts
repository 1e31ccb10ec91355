import { ApplicationFailureCategory } from '@temporalio/common';
import { ApplicationFailure, Context } from '@temporalio/activity';
import { Failure } from '../failure.js';
import { type Hook, NotTold } from '../telling/hook.js';
import { recordTold, toldOf } from '../warehouse/notices.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { NoticeRequest, TellNote } from './messages.js';
import { ledgerFacts, noticeDocument } from './notice-document.js';
import { inLedger } from './notice-ledger.js';
import { OUTDATED_RETRY_MS } from './served-pipeline.js';

/** Events that a worker tells at once: hooks may hang, and these share their slots with what plans and records. */
const AT_ONCE = 8;
/** Milliseconds, on average, after which an event that found no place comes again for the first time, and at most. */
const COME_AGAIN_MS = { first: 2_000, last: 60_000 };

/**
 * Tells the worker's notify hooks of an event, each that the ledger does not have as told, and records it there. Where a worker
 * is lost between the two, a hook is told a second time, with the same id. Fails as `NotTold`, to be tried again, where a hook
 * has not taken it, and the others are told all the same; and where the worker tells as many as it may just now. Where the
 * ledger is away, the document lacks what it alone knows, and says so: its being away may be what somebody is to be told of.
 */
export function tell(deps: ActivityDeps): (request: NoticeRequest) => Promise<void> {
  let now = 0;
  return answering('attempts', async (request, note) => {
    if (deps.hooks.length === 0) {
      throw new Failure(
        'WorkerOutdated',
        'This worker has no notify hook, and the run was planned by one that has. It is tried again until such a worker answers: ' +
          'give all of them the same REPAVE_NOTIFY_URL or REPAVE_NOTIFY_COMMAND.',
        { retryAfterMs: OUTDATED_RETRY_MS },
      );
    }
    if (now >= AT_ONCE) throw noPlace();
    now += 1;
    try {
      await tellHooks(deps, request, note);
    } finally {
      now -= 1;
    }
  });
}

async function tellHooks(deps: ActivityDeps, request: NoticeRequest, note: (doing: object) => void): Promise<void> {
  const { info } = Context.current();
  const told = new Set((info.heartbeatDetails as TellNote | undefined)?.told);
  note({ told: [...told] });
  const ids = deps.hooks.map((hook) => idFor(hook, request));
  const known = await inLedger(deps, request, async (database) => {
    const recorded = await toldOf(database, ids);
    // What an attempt before this one could not record.
    for (const id of told) if (!recorded.has(id)) await recordTold(database, id);
    return { recorded, facts: await ledgerFacts(database, request) };
  });
  if (request.event === 'heal-gave-up') {
    if (!known) throw onlyTheLedgerKnows();
    if (!known.facts.resting) return;
  }
  for (const id of known?.recorded ?? []) told.add(id);
  const text = JSON.stringify(noticeDocument(request, known?.facts));
  const untold = deps.hooks.filter((hook) => !told.has(idFor(hook, request)));
  const ends = await Promise.allSettled(
    untold.map(async (hook) => {
      await deliver(hook, text);
      const id = idFor(hook, request);
      told.add(id);
      note({ told: [...told] });
      // Now, as this attempt may be over before the next beat: it is handed on to the next one though the ledger is away.
      Context.current().heartbeat({ attempt: info.attempt, told: [...told] } satisfies TellNote);
      await inLedger(deps, request, (database) => recordTold(database, id));
    }),
  );
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
}

/** Whatever a hook fails by, it is tried again: what somebody is to be told of is not lost by a defect. */
async function deliver(hook: Hook, text: string): Promise<void> {
  const { cancellationSignal } = Context.current();
  try {
    await hook.tell(text, cancellationSignal);
  } catch (error) {
    cancellationSignal.throwIfAborted();
    const kind = error instanceof Error ? error.constructor.name : typeof error;
    const message =
      error instanceof NotTold
        ? error.message
        : `The notify ${hook.kind} failed in a way Repave does not know (${kind}).`;
    throw ApplicationFailure.retryable(message, 'NotTold');
  }
}

/** What the ledger knows it by that one hook was told of one event. */
function idFor({ kind }: Hook, { id }: NoticeRequest): string {
  return `${id} ${kind}`;
}

/** Later from try to try, and at random, so that hundreds which wait do not come at once. */
function noPlace(): ApplicationFailure {
  const { first, last } = COME_AGAIN_MS;
  const { attempt } = Context.current().info;
  return ApplicationFailure.create({
    type: 'NotTold',
    message: `This worker is telling ${AT_ONCE} events just now, and their hooks have not answered yet. It is tried again.`,
    nextRetryDelay: Math.round(Math.min(first * attempt, last) * (0.5 + Math.random())),
    category: ApplicationFailureCategory.BENIGN,
  });
}

function onlyTheLedgerKnows(): Failure {
  return new Failure(
    'DatabaseUnavailable',
    'Which partitions a heal has given up with is in the ledger, and that does not answer. It is tried again until it does.',
  );
}
