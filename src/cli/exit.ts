import { CommanderError } from 'commander';
import { type FailureType, isFailureType } from '../contract.js';
import { Failure } from '../failure.js';
import { redactedError } from '../telemetry/redacted-error.js';

/** What the command ends with. Part of the API: scripts and schedulers act on them. */
export const EXIT = {
  /** Done; also: nothing to do, or handed over with `--detach`. */
  done: 0,
  /** It ended but is not whole (some failed, or it was cancelled with partitions left), or a check found something. */
  notWhole: 1,
  /** The request or the set-up was wrong: nothing was begun. */
  wrong: 2,
  /** A server could not be reached. */
  unreachable: 3,
  /** A defect of Repave's own. */
  defect: 70,
  /** Ctrl-C. */
  interrupted: 130,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

const EXIT_OF: Readonly<Partial<Record<FailureType, ExitCode>>> = {
  InvalidInput: EXIT.wrong,
  UnknownPipeline: EXIT.wrong,
  InvalidPipeline: EXIT.wrong,
  PermissionDenied: EXIT.wrong,
  WrongLedger: EXIT.wrong,
  DatabaseUnavailable: EXIT.unreachable,
  Unexpected: EXIT.defect,
};

/** How an error that reached the command's end is told: exit code, the type programs match on, and a sentence. */
export interface Told {
  readonly exitCode: ExitCode;
  readonly type: string;
  readonly message: string;
}

/** The exit code of a failure's type; of a run that was cancelled or terminated, that it is not whole. */
export function exitCodeOf(type: string): ExitCode {
  return (isFailureType(type) ? EXIT_OF[type] : undefined) ?? EXIT.notWhole;
}

/** Tells any error. Failures keep their type; what is not one of ours is a defect, and says so. */
export function tell(error: unknown): Told {
  if (error instanceof CommanderError) {
    const exitCode = error.exitCode === 0 ? EXIT.done : EXIT.wrong;
    return { exitCode, type: 'InvalidInput', message: error.message.replace(/^error: /, '') };
  }
  if (error instanceof Failure) return { exitCode: exitCodeOf(error.type), type: error.type, message: error.message };
  if (!(error instanceof Error)) return defect(error);
  // By name: these come from modules that are loaded only where they are needed.
  switch (error.name) {
    case 'KeyError':
      return { exitCode: EXIT.wrong, type: 'InvalidInput', message: error.message };
    case 'ServerUnreachable':
      return { exitCode: EXIT.unreachable, type: 'TemporalUnavailable', message: error.message };
    case 'WorkflowNotFoundError':
      return {
        exitCode: EXIT.wrong,
        type: 'InvalidInput',
        message: 'Temporal knows no run of that id. `repave status` lists them.',
      };
    case 'NamespaceNotFoundError':
      return {
        exitCode: EXIT.wrong,
        type: 'InvalidInput',
        message: `Temporal has no such namespace: ${error.message}`,
      };
    case 'ServiceError':
      return { exitCode: EXIT.unreachable, type: 'TemporalUnavailable', message: serviceMessage(error) };
    default:
      return defect(error);
  }
}

function serviceMessage(error: Error): string {
  const { details } = (error.cause ?? {}) as { details?: unknown };
  const reason = typeof details === 'string' && details !== '' ? details : error.message;
  return `Temporal did not answer as it should (${reason}). What was started goes on by itself.`;
}

/** Told as a log would keep it: without what may hold a row's values. */
function defect(error: unknown): Told {
  const { type, message, code, at } = redactedError(error);
  const what = [type, code, message].filter((part) => part !== undefined && part !== '').join(': ');
  const lines = ['This is a defect of Repave, please report it.', what, ...(at ?? [])];
  return { exitCode: EXIT.defect, type: 'Unexpected', message: lines.join('\n') };
}
