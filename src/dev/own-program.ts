import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';

/**
 * Arguments for `node` that run a module of this package, named by its path below `src` without extension, as a program:
 * the compiled one, or in a checkout that runs from source, the source.
 */
export function ownProgram(module: string): string[] {
  const compiled = fileURLToPath(new URL(`../${module}.js`, import.meta.url));
  if (existsSync(compiled)) return [compiled];
  const loader = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href;
  return ['--import', loader, fileURLToPath(new URL(`../${module}.ts`, import.meta.url))];
}
