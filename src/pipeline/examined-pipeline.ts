import type { FileProblem, FileToRead } from './invalid-pipeline.js';
import type { Pipeline } from './pipeline.js';
import type { Place } from './place.js';

/** A pipeline's file as far as it can be read, with all that is wrong in it. */
export interface ExaminedPipeline {
  readonly file: FileToRead;
  readonly problems: readonly FileProblem[];
  /**
   * What could be read, to be held against a database: what is wrong is left out, as if it had not been written. To be
   * filled only where there is no problem. Absent where its target, partition or query cannot be read.
   */
  readonly pipeline?: Pipeline;
  /** The line, from 1, of a place; undefined where the file does not say. */
  readonly lineOf: (place: Place) => number | undefined;
}

/** A file that is no pipeline at all, for one reason. */
export function unreadable(file: FileToRead, message: string, line?: number): ExaminedPipeline {
  return { file, problems: [{ line, message }], lineOf: () => undefined };
}
