import { readdir, readFile } from 'node:fs/promises';
import { basename, join, relative, resolve, sep } from 'node:path';
import { Failure } from '../failure.js';
import { type ExaminedPipeline, unreadable } from './examined-pipeline.js';
import { standingFormer } from './former-names.js';
import { type FileToRead, refusal } from './invalid-pipeline.js';
import { didYouMean } from './nearest-name.js';
import { MAX_PIPELINE_NAME, PIPELINE_NAME } from './pipeline-name.js';
import type { Pipeline } from './pipeline.js';
import { examineSqlPipeline } from './read-sql-pipeline.js';
import { examineTypescriptPipeline } from './read-typescript-pipeline.js';

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
  for (const { file, pipeline, problems } of await examinePipelines(folder)) {
    if (pipeline && problems.length === 0) pipelines.set(file.name, pipeline);
    else broken.set(file.name, refusal(file, problems));
  }
  return { pipelines, broken };
}

/**
 * Reads every pipeline of a folder, sorted by name, each as far as it can be read and with all that is wrong in its file.
 * Throws `InvalidInput` where the folder cannot be read.
 */
export async function examinePipelines(folder: string): Promise<ExaminedPipeline[]> {
  const found = await findFiles(folder);
  const examined: ExaminedPipeline[] = [];
  for (const files of found.values()) examined.push(withFormer(await examineFile(files), found));
  return examined;
}

/**
 * Reads one pipeline of a folder by its name. Throws `UnknownPipeline`, with near names, where there is no such file,
 * `InvalidPipeline` where the file is wrong, and `InvalidInput` where the folder cannot be read.
 */
export async function loadPipeline(folder: string, name: string): Promise<Pipeline> {
  const found = await findFiles(folder);
  const files = found.get(name);
  if (files) {
    const { file, pipeline, problems } = await examineFile(files);
    if (pipeline && problems.length === 0) return pipeline;
    throw refusal(file, problems);
  }
  const names = [...found.keys()];
  const near = didYouMean(name, names);
  const listed =
    names.length === 0 ? ' The folder holds no pipelines.' : ` There are: ${names.slice(0, 20).join(', ')}.`;
  throw new Failure('UnknownPipeline', `There is no pipeline ${JSON.stringify(name)} in ${folder}.${near || listed}`);
}

function withFormer(examined: ExaminedPipeline, files: ReadonlyMap<string, readonly FileToRead[]>): ExaminedPipeline {
  const { pipeline, problems, lineOf } = examined;
  const message = pipeline && standingFormer(pipeline, files);
  if (message === undefined) return examined;
  return { ...examined, problems: [...problems, { line: lineOf({ kind: 'setting', path: ['formerly'] }), message }] };
}

async function examineFile(files: readonly FileToRead[]): Promise<ExaminedPipeline> {
  const [file, second] = files;
  if (!file) throw new Error('A pipeline without a file');
  if (second) return unreadable(file, `${second.shown} has the same name: keep one of the two.`);
  if (!PIPELINE_NAME.test(file.name) || file.name.length > MAX_PIPELINE_NAME) {
    return unreadable(
      file,
      `${JSON.stringify(file.name)} is no pipeline's name: expected lower-case letters, digits and _, with / between folders, at most ${MAX_PIPELINE_NAME} characters.`,
    );
  }
  try {
    if (!file.path.endsWith('.sql')) return await examineTypescriptPipeline(file);
    const text = textOf(await readFile(file.path));
    if (text !== undefined) return await examineSqlPipeline(file, text);
    return unreadable(file, 'it is no text: expected UTF-8 without NUL characters.');
  } catch (error) {
    const { code, syscall } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    return unreadable(file, `it cannot be read (${code}).`);
  }
}

/** PostgreSQL ends a text at a NUL, so what follows one would be sent unjudged or not at all. */
function textOf(content: Buffer): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(content);
    return text.includes('\0') ? undefined : text;
  } catch (error) {
    if (error instanceof TypeError) return undefined;
    throw error;
  }
}

/** The folder's pipeline files by the name each gives its pipeline, sorted. Throws `InvalidInput` where it cannot be read. */
export async function findFiles(folder: string): Promise<Map<string, FileToRead[]>> {
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
