import { readdir, readFile } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { Failure } from '../failure.js';
import { type FileToRead, invalidPipeline } from './invalid-pipeline.js';
import { didYouMean } from './nearest-name.js';
import type { Pipeline } from './pipeline.js';
import { readSqlPipeline } from './read-sql-pipeline.js';
import { readTypescriptPipeline } from './read-typescript-pipeline.js';

const NAME = /^[a-z0-9_]+(\/[a-z0-9_]+)*$/;
const FILE = /\.(sql|ts|mts|js|mjs)$/;

/** What a folder of pipelines holds. */
export interface LoadedPipelines {
  /** Pipelines by name, sorted. */
  readonly pipelines: Map<string, Pipeline>;
  /** Why a file is no pipeline (`InvalidPipeline`), by the name it would have. */
  readonly broken: Map<string, Failure>;
}

/**
 * Reads every pipeline of a folder, which is the project's `pipelines/`. A broken file does not keep the others from being
 * read. Names that begin with a dot, `node_modules` and `.d.ts` files are passed over. Throws `InvalidInput` where the folder
 * cannot be read.
 */
export async function loadPipelines(folder: string): Promise<LoadedPipelines> {
  const pipelines = new Map<string, Pipeline>();
  const broken = new Map<string, Failure>();
  for (const [name, files] of await findFiles(folder)) {
    try {
      pipelines.set(name, await readPipeline(files));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      broken.set(name, error);
    }
  }
  return { pipelines, broken };
}

/**
 * Reads one pipeline of a folder by its name. Throws `UnknownPipeline`, with near names, where there is no such file,
 * `InvalidPipeline` where the file is wrong, and `InvalidInput` where the folder cannot be read.
 */
export async function loadPipeline(folder: string, name: string): Promise<Pipeline> {
  const found = await findFiles(folder);
  const files = found.get(name);
  if (files) return readPipeline(files);
  const names = [...found.keys()];
  const near = didYouMean(name, names);
  const listed =
    names.length === 0 ? ' The folder holds no pipelines.' : ` There are: ${names.slice(0, 20).join(', ')}.`;
  throw new Failure('UnknownPipeline', `There is no pipeline ${JSON.stringify(name)} in ${folder}.${near || listed}`);
}

async function readPipeline(files: readonly FileToRead[]): Promise<Pipeline> {
  const [file, second] = files;
  if (!file) throw new Error('A pipeline without a file');
  if (second) throw invalidPipeline(file, undefined, `${second.shown} has the same name: keep one of the two.`);
  if (!NAME.test(file.name)) {
    throw invalidPipeline(
      file,
      undefined,
      `${JSON.stringify(file.name)} is no pipeline's name: expected lower-case letters, digits and _, with / between folders.`,
    );
  }
  try {
    if (!file.path.endsWith('.sql')) return await readTypescriptPipeline(file);
    return await readSqlPipeline(file, textOf(file, await readFile(file.path)));
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw invalidPipeline(file, undefined, `it cannot be read (${code}).`);
  }
}

/** PostgreSQL ends a text at a NUL, so what follows one would be sent unjudged or not at all. */
function textOf(file: FileToRead, content: Buffer): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(content);
    if (!text.includes('\0')) return text;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  throw invalidPipeline(file, undefined, 'it is no text: expected UTF-8 without NUL characters.');
}

/** The folder's pipeline files by the name each gives its pipeline, sorted by name. */
async function findFiles(folder: string): Promise<Map<string, FileToRead[]>> {
  let paths: string[];
  try {
    paths = await readdir(folder, { recursive: true });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Failure(
      'InvalidInput',
      `The folder of pipelines ${folder} cannot be read (${code}): start in the project's folder, name it in REPAVE_PROJECT, or make one with \`repave init\`.`,
    );
  }
  const found = new Map<string, FileToRead[]>();
  for (const path of paths.sort()) {
    const parts = path.split(sep);
    if (!FILE.test(path) || path.endsWith('.d.ts')) continue;
    if (parts.some((part) => part.startsWith('.') || part === 'node_modules')) continue;
    const name = parts.join('/').replace(FILE, '');
    const absolute = resolve(folder, path);
    const shown = join(basename(resolve(folder)), relative(resolve(folder), absolute))
      .split(sep)
      .join('/');
    found.set(name, [...(found.get(name) ?? []), { name, path: absolute, shown }]);
  }
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}
