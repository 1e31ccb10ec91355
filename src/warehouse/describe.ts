import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { refuseUnknownColumns } from './checks.js';
import { refuseMismatch } from './columns.js';
import type { Database } from './database.js';
import { toFailure } from './errors.js';
import { quotedTable } from './identifier.js';
import { prepareInsert } from './insert.js';
import type { Session } from './session.js';
import { readTarget, type Target, type TargetColumn } from './target.js';
import { begin } from './transaction.js';
import { withSession } from './with-session.js';

/** A pipeline held against the live database. */
export interface PipelineDescription {
  /** The target's full name; absent where it is not there or is refused. */
  readonly target?: string;
  readonly targetColumns: readonly TargetColumn[];
  /** Columns that a fill writes; absent where a TypeScript pipeline leaves them to its first row. */
  readonly written?: readonly string[];
  /** Each a sentence: what a fill would fail on. */
  readonly problems: readonly string[];
}

/** Has the server judge a pipeline as a fill would, and rolls back: nothing is read from a table or written. */
export async function describePipeline(database: Database, pipeline: Pipeline): Promise<PipelineDescription> {
  return withSession(database, new AbortController().signal, async (session) => {
    try {
      await begin(session, database, {
        applicationName: 'repave check',
        zone: pipeline.partition.zone,
        lockTimeoutMs: 5_000,
        statementTimeoutMs: 30_000,
      });
      const target = await readTarget(session, pipeline);
      return await describeAgainst(session, pipeline, target);
    } catch (error) {
      return { targetColumns: [], problems: [problem(error)] };
    } finally {
      await session.rollback();
    }
  });
}

async function describeAgainst(session: Session, pipeline: Pipeline, target: Target): Promise<PipelineDescription> {
  const problems: string[] = [];
  let written: readonly string[] | undefined;
  try {
    refuseUnknownColumns(pipeline, target);
  } catch (error) {
    problems.push(problem(error));
  }
  try {
    if (pipeline.kind === 'sql') {
      written = (await prepareInsert(session, pipeline, target, quotedTable(pipeline.target))).columns;
    } else if (pipeline.columns) {
      written = pipeline.columns;
      refuseMismatch(pipeline.name, written, target, pipeline.partition.column);
    }
  } catch (error) {
    problems.push(problem(error));
  }
  return { target: target.name, targetColumns: target.columns, written, problems };
}

/** What is wrong with the pipeline, as a sentence; what is wrong with the connection is thrown on. */
function problem(error: unknown): string {
  const failure = toFailure(error);
  if (failure.type === 'DatabaseUnavailable' || failure.type === 'Unexpected') throw failure;
  return new Failure(failure.type, failure.message).message;
}
