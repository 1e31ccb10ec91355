import { readFile } from 'node:fs/promises';
import { Failure } from '../failure.js';
import { findFiles } from '../pipeline/load.js';
import { readWithImports } from '../pipeline/relative-imports.js';

/** What the pipelines of a project are made of: texts by absolute path. */
export type PipelineSources = ReadonlyMap<string, string>;

/**
 * Reads the files of a folder of pipelines and all that they import by relative paths, wherever that lies. What cannot be
 * read is not there: a folder or a file may be gone for a moment while an editor or a checkout writes.
 */
export async function pipelineSources(folder: string): Promise<PipelineSources> {
  const sources = new Map<string, string>();
  for (const { path } of (await filesOf(folder)).flat()) {
    try {
      // Read again although another may import it too: what it imports must not hang on the order.
      const read = path.endsWith('.sql')
        ? [[path, await readFile(path, 'utf8')] as const]
        : await readWithImports(path);
      for (const [name, text] of read) sources.set(name, text);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).syscall === undefined) throw error;
    }
  }
  return sources;
}

async function filesOf(folder: string) {
  try {
    return [...(await findFiles(folder)).values()];
  } catch (error) {
    if (error instanceof Failure) return [];
    throw error;
  }
}
