import { type Client, isGrpcDeadlineError } from '@temporalio/client';
import { Failure } from '../failure.js';
import { abortable } from '../warehouse/abortable.js';
import { isNotThere } from './unanswered.js';

/** HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT of Temporal's API: only the event that ends a run. */
const CLOSE_EVENT = 2;
/** Milliseconds after which a question that the server has not answered is asked anew; by itself it answers after 20 s. */
const ANSWER_WITHIN_MS = 60_000;

/** Told that a run has ended, or why that is not known. */
type Listener = (failure?: Failure) => void;

/**
 * Tells when other runs end, as Temporal's server says it, by one question at a time for each run however many wait for it.
 * Over the worker's connection a question cannot be taken back, so one that nobody waits for any more is asked no further once
 * the server has answered, which takes it 20 s at most; whoever waits for the same run before that goes on with it.
 */
export class RunEnds {
  /** By workflow id, those who wait for the answer. */
  readonly #questions = new Map<string, Set<Listener>>();

  /**
   * Resolves once a workflow of these has no run, however the one it had has ended, with all that are known to have none.
   * Rejects with the signal's reason once that is aborted, and with `Conflict` where Temporal does not say.
   */
  async firstOf(client: Client, workflowIds: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    signal.throwIfAborted();
    const over = new Set<string>();
    const listeners = new Map<string, Listener>();
    try {
      await abortable(
        new Promise<void>((resolve, reject) => {
          for (const id of workflowIds) {
            const listener: Listener = (failure) => {
              if (failure) return reject(failure);
              over.add(id);
              resolve();
            };
            listeners.set(id, listener);
            this.#listen(client, id, listener);
          }
        }),
        signal,
      );
    } finally {
      for (const [id, listener] of listeners) this.#questions.get(id)?.delete(listener);
    }
    return over;
  }

  #listen(client: Client, workflowId: string, listener: Listener): void {
    const asked = this.#questions.get(workflowId);
    if (asked) {
      asked.add(listener);
      return;
    }
    const listeners = new Set([listener]);
    this.#questions.set(workflowId, listeners);
    const answered = (failure?: Failure): void => {
      this.#questions.delete(workflowId);
      for (const told of listeners) told(failure);
    };
    askUntilEnded(client, workflowId, () => listeners.size > 0).then(
      () => answered(),
      (error: unknown) =>
        answered(
          error instanceof Failure ? error : new Failure('Unexpected', 'An answer of Temporal was not understood.'),
        ),
    );
  }
}

/** Returns once the run has ended, or, after an answer, nobody wants to know any more. */
async function askUntilEnded(client: Client, workflowId: string, isWanted: () => boolean): Promise<void> {
  let nextPageToken: Uint8Array | undefined;
  do {
    try {
      const { history, nextPageToken: next } = await client.withDeadline(Date.now() + ANSWER_WITHIN_MS, () =>
        client.workflowService.getWorkflowExecutionHistory({
          namespace: client.options.namespace,
          execution: { workflowId },
          waitNewEvent: true,
          historyEventFilterType: CLOSE_EVENT,
          skipArchival: true,
          nextPageToken,
        }),
      );
      if ((history?.events?.length ?? 0) > 0) return;
      nextPageToken = next;
    } catch (error) {
      if (isGrpcDeadlineError(error)) continue;
      if (isNotThere(error)) return;
      throw new Failure('Conflict', `Temporal did not say when ${workflowId} ends. It is asked again.`);
    }
  } while (isWanted());
}
