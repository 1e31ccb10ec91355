import pg from 'pg';
import type { FailureType } from '../contract.js';
import type { Place } from '../pipeline/place.js';
import { toFailure } from './errors.js';
import type { Session } from './session.js';

/** What a fill would fail on, and where in the pipeline's file. */
export interface PipelineProblem {
  /** What it would fail as. */
  readonly type: FailureType;
  /** A sentence. Holds no value of a row. */
  readonly message: string;
  readonly place: Place;
}

/** What a fill would do and its author may not expect. */
export interface PipelineWarning {
  readonly message: string;
  readonly place: Place;
}

/** A setting's place. */
export function setting(...path: readonly PropertyKey[]): Place {
  return { kind: 'setting', path };
}

/**
 * What is wrong with the pipeline, by what a server or Repave said of it. What is wrong with the connection, or passes, is thrown
 * on: it says nothing of the pipeline.
 */
export function problemOf(error: unknown, place: Place): PipelineProblem {
  const failure = toFailure(error, { beforeRows: true });
  switch (failure.type) {
    case 'DatabaseUnavailable':
    case 'Conflict':
    case 'TimedOut':
    case 'Unexpected':
      throw failure;
    default:
      return { type: failure.type, message: failure.message, place };
  }
}

/** Where a server's error lies in a statement: characters before it, from 0; undefined where it does not say. */
export function errorPosition(error: unknown): number | undefined {
  const position = error instanceof pg.DatabaseError ? Number(error.position) : NaN;
  return position > 0 ? position - 1 : undefined;
}

/** What came of asking in a savepoint: an answer, or the error, after which the transaction goes on as if it had not been asked. */
export type Asked<Answer> =
  { readonly answer: Answer; readonly error?: undefined } | { readonly answer?: undefined; readonly error: unknown };

/** Asks something of the server within a transaction that is to outlive its refusal. The locks that it took are given back. */
export async function ask<Answer>(session: Session, question: () => Promise<Answer>): Promise<Asked<Answer>> {
  await session.query('SAVEPOINT repave_ask');
  let asked: Asked<Answer>;
  try {
    asked = { answer: await question() };
  } catch (error) {
    asked = { error };
  }
  await session.query('ROLLBACK TO SAVEPOINT repave_ask');
  await session.query('RELEASE SAVEPOINT repave_ask');
  return asked;
}
