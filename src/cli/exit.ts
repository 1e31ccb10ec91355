import { CommanderError } from 'commander';
import { type FailureType, FAILURES } from '../contract.js';
import { Failure } from '../failure.js';

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

/** Thrown by a command that could not reach a server that is no database; its message is for people. */
export class ServerUnreachable extends Error {
  override readonly name = 'ServerUnreachable';
}

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

/** Tells any error. Failures keep their type; what is not one of ours is a defect, and says so. */
export function tell(error: unknown): Told {
  if (error instanceof CommanderError) {
    const exitCode = error.exitCode === 0 ? EXIT.done : EXIT.wrong;
    return { exitCode, type: 'InvalidInput', message: error.message.replace(/^error: /, '') };
  }
  if (error instanceof Failure) {
    return { exitCode: EXIT_OF[error.type] ?? EXIT.notWhole, type: error.type, message: error.message };
  }
  if (error instanceof ServerUnreachable) {
    return { exitCode: EXIT.unreachable, type: 'TemporalUnavailable', message: error.message };
  }
  if (error instanceof Error && error.name === 'KeyError') {
    return { exitCode: EXIT.wrong, type: 'InvalidInput', message: error.message };
  }
  const type = error instanceof Error && Object.hasOwn(FAILURES, error.name) ? error.name : 'Unexpected';
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { exitCode: EXIT.defect, type, message: `This is a defect of Repave, please report it.\n${message}` };
}
