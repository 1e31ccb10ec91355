/** What a caller does about a failure: `no`: it is final. `counted`: tried `retry.attempts` times. `world`: until `giveUpAfter`. */
export type Retried = 'no' | 'counted' | 'world';

/** Every failure type, and whether it is retried. Types are API: callers and retry policies match on them. */
export const FAILURES = {
  InvalidInput: 'no',
  UnknownPipeline: 'no',
  InvalidPipeline: 'no',
  PlanChanged: 'no',
  Busy: 'no',
  SchemaMismatch: 'no',
  RowsOutsideWindow: 'no',
  CheckFailed: 'no',
  DataError: 'no',
  PermissionDenied: 'no',
  StaleAttempt: 'no',
  BackfillIncomplete: 'no',
  SourceFailed: 'counted',
  TimedOut: 'counted',
  Unexpected: 'counted',
  SourceNotReady: 'world',
  DatabaseUnavailable: 'world',
  Conflict: 'world',
  WrongLedger: 'world',
  WorkerOutdated: 'world',
} as const satisfies Record<string, Retried>;

export type FailureType = keyof typeof FAILURES;

export function isFailureType(type: string | null | undefined): type is FailureType {
  return typeof type === 'string' && Object.hasOwn(FAILURES, type);
}
