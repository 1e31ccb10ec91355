import type { BackfillPlan } from '../activities/messages.js';
import type { Progress } from '../contract.js';
import type { Steering } from './steering.js';
import type { Tally } from './tally.js';

/** How a backfill stands. `input` is what it was started with, which is all that is known while it plans. */
export function progressOf(input: unknown, plan: BackfillPlan | undefined, tally: Tally, steering: Steering): Progress {
  const given = (input as { pipeline?: unknown } | null | undefined)?.pipeline;
  const { paused, concurrency } = steering;
  return {
    pipeline: plan?.pipeline ?? (typeof given === 'string' ? given : ''),
    first: plan?.first,
    last: plan?.last,
    total: plan?.total ?? 0,
    ...tally.counts(),
    running: [...tally.running].map(([keys, since]) => ({ keys, since: new Date(since).toISOString() })),
    ...(tally.waiting > 0 ? { waiting: tally.waiting } : {}),
    ...(tally.notReady ? { notReady: tally.notReady } : {}),
    ...(tally.busy > 0 ? { busy: tally.busy } : {}),
    ...(tally.downstream === undefined ? {} : { downstream: tally.downstream }),
    failures: tally.failures,
    phase: phaseOf(tally, steering),
    ...(plan && concurrency !== undefined ? { concurrency } : {}),
    ...(paused ? { paused } : {}),
    ...pace(plan, tally, steering),
  };
}

function phaseOf({ phase }: Tally, { stopping, paused }: Steering): Progress['phase'] {
  if (phase === 'planning' || phase === 'ended') return phase;
  return stopping ? 'stopping' : paused ? 'paused' : phase;
}

function pace(
  plan: BackfillPlan | undefined,
  tally: Tally,
  { stopping, paused }: Steering,
): Pick<Progress, 'perMinute' | 'secondsLeft'> {
  const { perMinute } = tally.pace;
  if (!plan || perMinute === undefined) return {};
  if (stopping || paused || tally.phase === 'ended') return { perMinute };
  const left = tally.left(plan.total);
  // Others decide when it goes on.
  if (left <= tally.waiting + tally.busy) return { perMinute };
  return { perMinute, secondsLeft: Math.ceil((left * 60) / perMinute) };
}
