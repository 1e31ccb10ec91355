import {
  ApplicationFailure,
  currentUpdateInfo,
  defineSignal,
  defineUpdate,
  log,
  setHandler,
} from '@temporalio/workflow';
import {
  type Lever,
  LEVERS,
  MAX_CONCURRENCY,
  MAX_REASON_LENGTH,
  NOT_IN_A_REASON,
  STEER_SIGNAL,
  type Steer,
  type Steered,
} from '../contract.js';
import type { Pull, Steering } from './steering.js';

/** Characters of a steer's id. */
const MAX_ID_LENGTH = 200;
/** Characters of a given value that a message shows. */
const MAX_SHOWN = 80;

const DESCRIPTIONS: Record<Lever, string> = {
  pause: 'Starts nothing more until resume; what runs goes on to its end. Takes {"reason": "…"}, or nothing',
  resume: 'Goes on after a pause. Takes nothing',
  setConcurrency: `Partitions at once, from now on. Takes {"concurrency": 1 to ${MAX_CONCURRENCY}}`,
  stop: 'Finishes what runs, starts nothing more, and ends. Takes nothing',
  retryFailed: 'Fills the partitions that have failed so far again, behind the others. Takes nothing',
};

/**
 * Sets the handlers of a backfill's levers: each is an update, and the signal `steer` pulls any of them. They change the setting
 * at once and wait for nothing. An update of another shape is rejected as `InvalidInput`; such a signal is logged and passed over.
 */
export function setLevers(steering: Steering): void {
  for (const lever of LEVERS) {
    setHandler(
      defineUpdate<Steered, unknown[]>(lever),
      (...args: unknown[]) => steering.pull(updateId(), asPull(lever, args)),
      { validator: (...args: unknown[]) => void asPull(lever, args), description: DESCRIPTIONS[lever] },
    );
  }
  setHandler(
    defineSignal<unknown[]>(STEER_SIGNAL),
    (...args: unknown[]) => {
      try {
        const { id, lever, input } = asSteer(args);
        steering.pull(id, asPull(lever, [input]));
      } catch (error) {
        if (!(error instanceof ApplicationFailure)) throw error;
        log.warn('A signal steer was passed over', { reason: error.message });
      }
    },
    { description: 'Pulls a lever also where no worker runs. Takes {"id": "…", "lever": "pause", "input": {…}}' },
  );
}

function updateId(): string {
  const info = currentUpdateInfo();
  if (!info) throw new Error('An update handler runs outside of its update.');
  return info.id;
}

function asPull(lever: Lever, args: readonly unknown[]): Pull {
  const [input, ...rest] = args;
  if (rest.length > 0) throw malformed(`${lever} takes one JSON object, and was given ${args.length} arguments.`);
  switch (lever) {
    case 'pause': {
      const { reason } = fields(lever, input, ['reason']);
      if (reason === undefined) return { lever, input: {} };
      if (typeof reason === 'string' && reason.length <= MAX_REASON_LENGTH && !NOT_IN_A_REASON.test(reason)) {
        return { lever, input: { reason } };
      }
      throw malformed(
        `reason must be a text of at most ${MAX_REASON_LENGTH} characters in one line, and was given ${
          typeof reason !== 'string'
            ? `as ${shown(reason)}`
            : NOT_IN_A_REASON.test(reason)
              ? 'with a control character'
              : `as one of ${reason.length}`
        }.`,
      );
    }
    case 'setConcurrency': {
      const { concurrency } = fields(lever, input, ['concurrency']);
      if (isCount(concurrency)) return { lever, input: { concurrency } };
      throw malformed(
        `concurrency must be a whole number from 1 to ${MAX_CONCURRENCY}, and was given as ${shown(concurrency)}.`,
      );
    }
    case 'resume':
    case 'stop':
    case 'retryFailed':
      fields(lever, input, []);
      return { lever, input: {} };
    default:
      return lever satisfies never;
  }
}

function asSteer(args: readonly unknown[]): Steer {
  const { id, lever, input } = fields(STEER_SIGNAL, args[0], ['id', 'lever', 'input']);
  if (typeof id !== 'string' || id.length === 0 || id.length > MAX_ID_LENGTH) {
    throw malformed(`id must be a text of 1 to ${MAX_ID_LENGTH} characters, and was given as ${shown(id)}.`);
  }
  const known = LEVERS.find((name) => name === lever);
  if (!known) throw malformed(`lever must be one of ${LEVERS.join(', ')}, and was given as ${shown(lever)}.`);
  return { id, lever: known, input: input as Steer['input'] };
}

/** The fields of an object that has no others; nothing at all is an empty one. */
function fields(of: string, given: unknown, known: readonly string[]): Readonly<Record<string, unknown>> {
  const expected = known.length === 0 ? 'an empty JSON object, or nothing' : `a JSON object with ${known.join(', ')}`;
  if (given === undefined || given === null) return {};
  if (typeof given !== 'object' || Array.isArray(given)) {
    throw malformed(`${of} takes ${expected}, and was given ${shown(given)}.`);
  }
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw malformed(`${of} takes ${expected}, and was given the unknown field ${shown(unknown)}.`);
  }
  return given as Readonly<Record<string, unknown>>;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_CONCURRENCY;
}

function shown(value: unknown): string {
  const text = value === undefined ? 'nothing' : (JSON.stringify(value) ?? typeof value);
  return text.length <= MAX_SHOWN ? text : `${text.slice(0, MAX_SHOWN - 1)}…`;
}

function malformed(message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, 'InvalidInput');
}
