import { readFile } from 'node:fs/promises';
import { dirname, join, relative, resolve, sep } from 'node:path';

const IMPORT = /\b(?:from|import|require)\s*\(?\s*(['"`])(\.{1,2}\/[^'"`\n]+)\1/g;
const ENDINGS = ['', '.ts', '.mts', '.js', '.mjs', '.cjs', '.json', `${sep}index.ts`, `${sep}index.js`];

/**
 * The texts of a file and of all it imports by relative paths, transitively, each by its absolute path. What it names but
 * cannot be found is left out: if it was more than a word in a comment, loading the file fails.
 */
export async function readWithImports(file: string): Promise<Map<string, string>> {
  const sources = new Map<string, string>();
  const pending = [resolve(file)];
  for (let path = pending.pop(); path !== undefined; path = pending.pop()) {
    if (sources.has(path)) continue;
    const text = await readFile(path, 'utf8');
    sources.set(path, text);
    for (const [, , specifier = ''] of text.matchAll(IMPORT)) {
      const found = await firstFile(candidates(join(dirname(path), specifier)));
      if (found !== undefined) pending.push(found);
    }
  }
  return sources;
}

/** A pipeline's `formerly`, and the whole line where that holds nothing else. */
const FORMERLY =
  /^[ \t]*formerly\s*:\s*(['"`])[^'"`\n]*\1[ \t]*,?[ \t]*\r?\n|\bformerly\s*:\s*(['"`])[^'"`\n]*\2[ \t]*,?[ \t]*/gm;

/**
 * The sources by their path as seen from the file, so that a fingerprint does not depend on where a project lies. The file's
 * own name is not in it, nor is its `formerly`: a pipeline that is only renamed stays the same.
 */
export function pathsSeenFrom(file: string, sources: ReadonlyMap<string, string>): Map<string, string> {
  const folder = dirname(file);
  return new Map(
    [...sources].map(([path, text]) =>
      path === resolve(file) ? ['.', text.replace(FORMERLY, '')] : [relative(folder, path).split(sep).join('/'), text],
    ),
  );
}

/** An import of `./a.js` means `a.ts` where that is what there is. */
function candidates(path: string): string[] {
  const typescript = path.replace(/\.(m?)js$/, '.$1ts');
  return [...ENDINGS.map((ending) => path + ending), ...(typescript === path ? [] : [typescript])];
}

async function firstFile(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    try {
      await readFile(path);
      return path;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code !== 'ENOENT' && code !== 'EISDIR' && code !== 'ENOTDIR') throw error;
    }
  }
  return undefined;
}
