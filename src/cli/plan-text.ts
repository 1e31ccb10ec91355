import type { BackfillInput } from '../contract.js';
import type { ReasonCounts } from '../plan/plan-id.js';
import { flagOf } from './flag.js';
import { counted, duration, number, span } from './format.js';
import type { PlannedRequest } from './plan-request.js';

/** `sales_summary 1997-01-01..1997-01-31: 31 partitions to fill (31 missing)`. */
export function summaryText({ plan }: PlannedRequest): string {
  const what = `${plan.pipeline} ${span(plan.first, plan.last)}`.trimEnd();
  return `${what}: ${counted(plan.total, 'partition')} to fill${reasonsText(plan.counts)}`;
}

/** ` (3 failed, 2 missing)`; empty where there is none. */
function reasonsText(counts: ReasonCounts): string {
  const reasons = Object.entries(counts).filter(([, count]) => count > 0);
  return reasons.length === 0 ? '' : ` (${reasons.map(([reason, count]) => `${number(count)} ${reason}`).join(', ')})`;
}

/** How long a backfill of a plan is to take. */
export interface Estimate {
  readonly seconds: number;
  /** Of one fill, on average. */
  readonly secondsPerPartition: number;
  /** Recent fills that it is known from. */
  readonly fills: number;
  /** Partitions at once. */
  readonly concurrency: number;
}

/** By what fills of the pipeline have taken lately; undefined where it has none yet. */
export function estimateOf(input: BackfillInput, { plan, pace, concurrency }: PlannedRequest): Estimate | undefined {
  if (pace === undefined) return undefined;
  const lanes = input.concurrency ?? concurrency;
  const seconds = (plan.total * pace.seconds) / Math.max(1, Math.min(lanes, plan.total));
  return { seconds, secondsPerPartition: pace.seconds, fills: pace.fills, concurrency: lanes };
}

export function estimateText(estimate: Estimate | undefined): string {
  if (estimate === undefined) return 'How long it takes is not known yet: no fill of this pipeline is in the ledger.';
  const { seconds, secondsPerPartition, fills, concurrency } = estimate;
  const each = secondsPerPartition < 0.05 ? 'less than 0.1 s' : duration(secondsPerPartition);
  const known = fills === 1 ? 'as the last fill took' : `as the last ${number(fills)} fills took`;
  return `About ${seconds < 1 ? '1 s' : duration(Math.round(seconds))}, ${concurrency} at a time, ${each} each ${known}.`;
}

/** The command that starts a backfill with this input. Nothing in it needs quoting. */
export function backfillCommand(input: BackfillInput): string {
  const { pipeline, from, to, keys, last, only, ...flags } = input;
  const plain = keys ?? (from === undefined ? [] : [to === from ? from : `${from}..${to ?? ''}`]);
  const words = ['repave backfill', pipeline, ...plain];
  if (last !== undefined) words.push('--last', String(last));
  if (only) words.push('--only', only.join(','));
  for (const [field, value] of Object.entries(flags)) {
    if (value === undefined || value === false) continue;
    words.push(...(value === true ? [flagOf(field)] : [flagOf(field), String(value)]));
  }
  return words.join(' ');
}
