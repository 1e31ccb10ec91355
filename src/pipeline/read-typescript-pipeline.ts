import { dirname, extname, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createJiti } from 'jiti';
import { containedLoad, LOAD_LIMIT_MS, Uncontained } from './contained-load.js';
import { isDefinedPipeline } from './define-pipeline.js';
import { type ExaminedPipeline, unreadable } from './examined-pipeline.js';
import { typescriptFingerprint } from './fingerprint.js';
import type { FileProblem, FileToRead } from './invalid-pipeline.js';
import type { RowsContext, TypeScriptPipeline } from './pipeline.js';
import type { Place } from './place.js';
import { pathsSeenFrom, readWithImports } from './relative-imports.js';
import { readTypescriptSettings } from './settings.js';
import { settingLine } from './typescript-lines.js';
import { readChecks } from './written-query.js';

/** This very package, compiled or not, so that `import … from 'repave'` needs neither a build nor an installed copy. */
const entry = (name: string): string =>
  fileURLToPath(new URL(`../${name}${extname(import.meta.url)}`, import.meta.url));

/**
 * Loads and checks a pipeline of TypeScript or JavaScript, and finds all that is wrong with its settings. Its code runs anew
 * at each call, and is given up after `limitMs`.
 */
export async function examineTypescriptPipeline(
  file: FileToRead,
  limitMs: number = LOAD_LIMIT_MS,
): Promise<ExaminedPipeline> {
  const sources = await readWithImports(file.path);
  const imported = await importDefault(file, sources.keys(), limitMs);
  if (imported.problem) return unreadable(file, imported.problem.message, imported.problem.line);
  const { definition } = imported;
  if (!isDefinedPipeline(definition)) {
    return unreadable(
      file,
      `its default export is no pipeline: expected \`export default definePipeline({ … })\`. Code that pipelines share belongs beside pipelines/, not in it.`,
    );
  }
  const source = sources.get(resolve(file.path)) ?? '';
  const { settings, problems } = readTypescriptSettings(definition);
  const read = settings && (await readChecks(settings.checks, { by: settings.partition.by }));
  const { ready, changed } = definition;
  const pipeline: TypeScriptPipeline | undefined =
    settings && read
      ? Object.freeze({
          ...settings,
          checks: read.checks,
          ...(typeof ready === 'function' ? { ready: (context: RowsContext) => ready(context) } : {}),
          ...(typeof changed === 'function' ? { changed: (context: RowsContext) => changed(context) } : {}),
          kind: 'typescript',
          name: file.name,
          file: file.path,
          rows: (context: RowsContext) => definition.rows(context),
          fingerprint: typescriptFingerprint(settings, pathsSeenFrom(file.path, sources)),
        })
      : undefined;
  const pathOf = (place: Place): readonly PropertyKey[] => {
    switch (place.kind) {
      case 'setting':
        return place.path;
      case 'check':
        return read?.paths[place.index] ?? ['checks'];
      case 'column':
      case 'select':
      case 'query':
        return [settings?.columns ? 'columns' : 'rows'];
      default:
        return place satisfies never;
    }
  };
  return {
    file,
    problems: [...problems, ...(read?.problems ?? [])].map(({ path, message }) => ({
      line: settingLine(source, path),
      message,
    })),
    pipeline,
    lineOf: (place) => settingLine(source, pathOf(place)),
  };
}

type Imported =
  | { readonly definition: unknown; readonly problem?: undefined }
  | { readonly definition?: undefined; readonly problem: FileProblem };

async function importDefault(file: FileToRead, sources: Iterable<string>, limitMs: number): Promise<Imported> {
  const jiti = createJiti(import.meta.url, {
    fsCache: false,
    alias: { 'repave/contract': entry('contract'), 'repave/client': entry('client'), repave: entry('index') },
  });
  // What was loaded before may be another text than the one just read for the fingerprint.
  for (const path of sources) delete jiti.cache[path];
  try {
    const load = (): Promise<Record<string, unknown>> => jiti.import<Record<string, unknown>>(file.path);
    const module = await containedLoad(load, limitMs);
    return { definition: module.default };
  } catch (error) {
    if (error instanceof Uncontained) return { problem: { message: error.message } };
    const [message = '', place = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    const parsed = message.startsWith('ParseError: ') ? /^ *(.+):(\d+):\d+ *$/.exec(place) : null;
    const [, path = file.path, line] = parsed ?? [];
    const own = path === file.path;
    const elsewhere = own ? '' : `, in ${relative(dirname(file.path), path)}:${line}`;
    return {
      problem: {
        line: own && line ? Number(line) : undefined,
        message: `it does not load: ${message.trim()}${elsewhere}`,
      },
    };
  }
}
