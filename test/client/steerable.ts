/** A workflow that has a backfill's levers and nothing else, for tests of the client that pulls them. */
import { HandlerUnfinishedPolicy } from '@temporalio/common';
import {
  ApplicationFailure,
  condition,
  continueAsNew,
  currentUpdateInfo,
  defineQuery,
  defineSignal,
  defineUpdate,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import { type Lever, LEVERS, PROGRESS_QUERY, type Steer, STEER_SIGNAL, type Steered } from '../../src/contract.js';

/** A lever as it has arrived. */
export interface Arrived {
  readonly id: string;
  readonly lever: Lever;
  readonly input?: unknown;
  readonly by: 'update' | 'signal';
}

export interface SteerableInput {
  readonly pipeline: string;
  /** Continues as new each time so many milliseconds have passed. */
  readonly runMs?: number;
  /** Levers other than `stop` answer so many milliseconds after they were pulled, unless the run has gone on as a new one by then. */
  readonly answerMs?: number;
}

/** A concurrency that looks right, and that its validator refuses. */
export const UNWANTED = 13;

/** Ends once `stop` is pulled, with all that has arrived, that which has arrived twice included. */
export async function backfill(input: SteerableInput, before: readonly Arrived[] = []): Promise<readonly Arrived[]> {
  const arrived = [...before];
  const stopping = (): boolean => arrived.some(({ lever }) => lever === 'stop');
  for (const lever of LEVERS) {
    const handle = async (given: unknown): Promise<Steered> => {
      arrived.push({ id: currentUpdateInfo()?.id ?? '', lever, input: given, by: 'update' });
      if (input.answerMs !== undefined && lever !== 'stop') await sleep(input.answerMs);
      return { concurrency: 4, stopping: stopping() };
    };
    setHandler(defineUpdate<Steered, [unknown]>(lever), handle, { validator, unfinishedPolicy });
  }
  setHandler(defineSignal<[Steer]>(STEER_SIGNAL), (steer) => void arrived.push({ ...steer, by: 'signal' }));
  setHandler(defineQuery<readonly Arrived[]>('arrived'), () => arrived);
  setHandler(defineQuery<{ phase: string }>(PROGRESS_QUERY), () => ({ phase: stopping() ? 'ended' : 'filling' }));

  if (input.runMs === undefined) await condition(stopping);
  else await condition(stopping, input.runMs);
  return stopping() ? arrived : continueAsNew<typeof backfill>(input, arrived);
}

/** What is under way with an update when its run goes on as a new one is for the sender to find out. */
const unfinishedPolicy = HandlerUnfinishedPolicy.ABANDON;

function validator(given: unknown): void {
  if ((given as { concurrency?: unknown } | undefined)?.concurrency !== UNWANTED) return;
  throw ApplicationFailure.nonRetryable(`The concurrency is ${UNWANTED}: expected another.`, 'InvalidInput');
}

/** Has none of the levers. */
export async function partition(): Promise<void> {
  await condition(() => false);
}
