import type { Attempt, RepaveClient } from '../client.js';
import { WORKFLOW_TYPES } from '../contract.js';
import { instant } from './format.js';
import { isUnknown, listedAsRunning } from './open-backfills.js';
import { waitsFor } from './sight.js';

/** A backfill that the ledger does not have: no worker has begun it. */
export interface Unbegun {
  readonly id: string;
  readonly run: string;
  /** `waiting` for a worker, or to be planned; else how it has ended, in Temporal's word. */
  readonly state: string;
  readonly startedAt: Date;
  readonly attempts: readonly Attempt[];
}

/** What Temporal has of a backfill that no ledger knows; undefined where it knows none of that id. */
export async function unbegun(repave: RepaveClient, id: string): Promise<Unbegun | undefined> {
  try {
    const { type, status, startTime, runId } = await repave.temporal.workflow.getHandle(id).describe();
    if (type !== WORKFLOW_TYPES.backfill) return undefined;
    const runs = status.name === 'RUNNING';
    const attempts = runs ? await repave.handle(id).attempts() : [];
    const state = runs ? 'waiting' : status.name.toLowerCase().replace('_', ' ');
    return { id, run: runId, state, startedAt: startTime, attempts };
  } catch (error) {
    if (isUnknown(error)) return undefined;
    throw error;
  }
}

/** Backfills that Temporal lists as running and that are none of these, of a pipeline where one is named. */
export async function allUnbegun(
  repave: RepaveClient,
  pipeline: string | undefined,
  begun: ReadonlySet<string>,
): Promise<Unbegun[]> {
  const ids = (await listedAsRunning(repave, pipeline)).filter((id) => !begun.has(id));
  const found = await Promise.all(ids.map((id) => unbegun(repave, id)));
  return found.flatMap((one) => (one?.state === 'waiting' ? [one] : []));
}

/** The same in words. */
export function unbegunText({ id, state, startedAt, attempts }: Unbegun): string {
  const waits = attempts.flatMap((attempt) => waitsFor(attempt) ?? []);
  const why =
    state !== 'waiting'
      ? `it ended as ${state}, and no ledger has it`
      : waits.length > 0
        ? `it waits: ${waits.join('; ')}`
        : 'it waits for a worker to begin it';
  return `${id}  ${state}\n  ${why}\n  started ${instant(startedAt)}`;
}
