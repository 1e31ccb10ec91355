import { dirname, extname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createJiti } from 'jiti';
import { isDefinedPipeline } from './define-pipeline.js';
import { typescriptFingerprint } from './fingerprint.js';
import { type FileToRead, invalidPipeline } from './invalid-pipeline.js';
import type { RowsContext, TypeScriptPipeline } from './pipeline.js';
import { pathsSeenFrom, readWithImports } from './relative-imports.js';
import { readTypescriptSettings } from './settings.js';

/** This very package, compiled or not, so that `import … from 'repave'` needs neither a build nor an installed copy. */
const entry = (name: string): string =>
  fileURLToPath(new URL(`../${name}${extname(import.meta.url)}`, import.meta.url));

/**
 * Loads and checks a pipeline of TypeScript or JavaScript. Its code runs anew at each call. Throws `InvalidPipeline` where
 * it does not load, exports no pipeline, or its settings are wrong.
 */
export async function readTypescriptPipeline(file: FileToRead): Promise<TypeScriptPipeline> {
  const sources = await readWithImports(file.path);
  const definition = await importDefault(file, sources.keys());
  if (!isDefinedPipeline(definition)) {
    throw invalidPipeline(
      file,
      undefined,
      `its default export is no pipeline: expected \`export default definePipeline({ … })\`. Code that pipelines share belongs beside pipelines/, not in it.`,
    );
  }
  const read = readTypescriptSettings(definition);
  if (!read.settings) {
    throw invalidPipeline(file, undefined, read.problems.map(({ message }) => message).join(' '));
  }
  return Object.freeze({
    ...read.settings,
    kind: 'typescript',
    name: file.name,
    file: file.path,
    rows: (context: RowsContext) => definition.rows(context),
    fingerprint: typescriptFingerprint(read.settings, pathsSeenFrom(file.path, sources)),
  });
}

async function importDefault(file: FileToRead, sources: Iterable<string>): Promise<unknown> {
  const jiti = createJiti(import.meta.url, {
    fsCache: false,
    alias: { 'repave/contract': entry('contract'), 'repave/client': entry('client'), repave: entry('index') },
  });
  // What was loaded before may be another text than the one just read for the fingerprint.
  for (const path of sources) delete jiti.cache[path];
  try {
    const module = await jiti.import<Record<string, unknown>>(file.path);
    return module.default;
  } catch (error) {
    const [message = '', place = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    const parsed = message.startsWith('ParseError: ') ? /^ *(.+):(\d+):\d+ *$/.exec(place) : null;
    const [, path = file.path, line] = parsed ?? [];
    const own = path === file.path;
    const elsewhere = own ? '' : `, in ${relative(dirname(file.path), path)}:${line}`;
    throw invalidPipeline(
      file,
      own && line ? Number(line) : undefined,
      `it does not load: ${message.trim()}${elsewhere}`,
    );
  }
}
