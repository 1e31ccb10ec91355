import { createHash } from 'node:crypto';
import { PARTITION_STATES, type PartitionState } from '../contract.js';
import { Failure } from '../failure.js';

/** Partitions by why they are in a plan. */
export type ReasonCounts = Readonly<Record<PartitionState, number>>;

/** What a plan's id says of it, without the plan at hand. */
export interface PlanIdentity {
  /** The beginning of the pipeline's fingerprint. */
  readonly query: string;
  readonly counts: ReasonCounts;
  /** Over the keys and their reasons, whatever order they are filled in. */
  readonly digest: string;
}

/** What an id looks like, for messages. */
export const PLAN_ID_FORM =
  "a plan's id as `repave plan` gives it, such as p1-3f9a2c01b4d7-failed3-missing2-0f1e2d3c4b5a69788796";

const QUERY_LENGTH = 12;
const DIGEST_LENGTH = 20;
const MODULUS = 1n << BigInt(DIGEST_LENGTH * 4);
const COUNTS = PARTITION_STATES.map((state) => `(?:${state}([1-9][0-9]{0,8})-)?`).join('');
const PATTERN = new RegExp(`^p1-([0-9a-z]{1,${QUERY_LENGTH}})-${COUNTS}([0-9a-f]{${DIGEST_LENGTH}})$`);

/**
 * A plan's id: `p1-<query>-<reason><count>-…-<digest>`, of letters, digits and hyphens, so that it stands in URLs and shells as
 * it is. Two plans have the same one where query, keys and reasons are the same.
 */
export function planId({ query, counts, digest }: PlanIdentity): string {
  const reasons = PARTITION_STATES.filter((state) => counts[state] > 0).map((state) => `${state}${counts[state]}`);
  return ['p1', query, ...reasons, digest].join('-');
}

/** Reads an id. Throws `InvalidInput` for a text that is none. */
export function readPlanId(id: string): PlanIdentity {
  const [whole, query = '', ...rest] = PATTERN.exec(id) ?? [];
  if (whole === undefined)
    throw new Failure('InvalidInput', `plan is ${JSON.stringify(id)}: expected ${PLAN_ID_FORM}.`);
  const digest = rest.pop() ?? '';
  const counts = Object.fromEntries(PARTITION_STATES.map((state, index) => [state, Number(rest[index] ?? 0)]));
  return { query, counts: counts as Record<PartitionState, number>, digest };
}

export function isPlanId(text: string): boolean {
  return PATTERN.test(text);
}

/** The part of a fingerprint that an id holds: what follows its version. */
export function queryOf(fingerprint: string): string {
  return fingerprint.slice(fingerprint.indexOf(':') + 1).slice(0, QUERY_LENGTH);
}

/**
 * Digests keys with their reasons, one by one: a sum of SHA-256s, so that a plan walked from its end has the same as one
 * walked from its beginning, and nothing is held.
 */
export class PlanDigest {
  #sum = 0n;

  add(key: string, reason: PartitionState): void {
    const hash = createHash('sha256').update(`${key} ${reason}`).digest('hex');
    this.#sum = (this.#sum + BigInt(`0x${hash.slice(0, DIGEST_LENGTH)}`)) % MODULUS;
  }

  toString(): string {
    return this.#sum.toString(16).padStart(DIGEST_LENGTH, '0');
  }
}
