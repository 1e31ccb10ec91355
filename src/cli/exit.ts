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
  /** The request or the set-up was wrong, or the plan it names is another by now: nothing was begun. */
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
  PlanChanged: EXIT.wrong,
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
      return serviceError(error);
    default:
      return setUpError(error) ?? defect(error);
  }
}

/** What gRPC's codes call a request that no repetition helps: https://grpc.io/docs/guides/status-codes/. */
const REFUSED: Readonly<Record<number, string>> = {
  3: 'INVALID_ARGUMENT',
  7: 'PERMISSION_DENIED',
  16: 'UNAUTHENTICATED',
};

function serviceError(error: Error): Told {
  const { details, code } = (error.cause ?? {}) as { details?: unknown; code?: unknown };
  const reason = typeof details === 'string' && details !== '' ? details : error.message;
  const refused = typeof code === 'number' ? REFUSED[code] : undefined;
  if (refused !== undefined) {
    const message = `Temporal refused the request (${refused}): ${reason}`;
    return { exitCode: EXIT.wrong, type: 'InvalidInput', message };
  }
  const message = `Temporal did not answer as it should (${reason}). What was started goes on by itself.`;
  return { exitCode: EXIT.unreachable, type: 'TemporalUnavailable', message };
}

/** What the system's codes say of a folder or a disk that is not as it should be. */
const SET_UP: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'not permitted',
  EROFS: 'the file system is read-only',
  ENOSPC: 'no space is left',
  EDQUOT: 'the quota is used up',
  ENOTDIR: 'a part of the path is no folder',
  EISDIR: 'it is a folder',
};

function setUpError(error: NodeJS.ErrnoException): Told | undefined {
  const reason = SET_UP[error.code ?? ''];
  if (reason === undefined || error.syscall === undefined) return undefined;
  const where = error.path === undefined ? 'a file' : error.path;
  const message = `${where} cannot be used: ${reason} (${error.code}, ${error.syscall}). Mend that, or name another folder.`;
  return { exitCode: EXIT.wrong, type: 'InvalidInput', message };
}

/** Told as a log would keep it: without what may hold a row's values. */
function defect(error: unknown): Told {
  const { type, message, code, at } = redactedError(error);
  const what = [type, code, message].filter((part) => part !== undefined && part !== '').join(': ');
  const lines = ['This is a defect of Repave, please report it.', what, ...(at ?? [])];
  return { exitCode: EXIT.defect, type: 'Unexpected', message: lines.join('\n') };
}
