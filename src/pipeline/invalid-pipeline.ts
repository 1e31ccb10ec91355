import { Failure } from '../failure.js';

/** A pipeline file as messages name it, and the way to refuse it. */
export interface FileToRead {
  /** The pipeline's name. */
  readonly name: string;
  /** Absolute path. */
  readonly path: string;
  /** The path as messages show it: `pipelines/sales_summary.sql`. */
  readonly shown: string;
}

/** One thing that is wrong with a file. */
export interface FileProblem {
  /** From 1; absent where it is the file as a whole. */
  readonly line?: number;
  readonly message: string;
}

/** The failure that refuses a file: its first problem, and how many there are more. */
export function refusal(file: FileToRead, problems: readonly FileProblem[]): Failure {
  const [first, ...others] = problems;
  const more = others.length > 0 ? ` (${others.length} more after that)` : '';
  return invalidPipeline(file, first?.line, `${first?.message ?? 'invalid'}${more}`);
}

/** The failure that refuses a pipeline file: `pipelines/a.sql:3: what is wrong`. Lines count from 1. */
export function invalidPipeline(file: FileToRead, line: number | undefined, message: string): Failure {
  return new Failure('InvalidPipeline', `${file.shown}${line === undefined ? '' : `:${line}`}: ${message}`);
}

/** The line, from 1, in which an offset of a text lies. */
export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}
