import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/**
 * Arguments for `node` that run a module of this package, named by its path below `src` without extension, as a program:
 * the compiled one, or in a checkout that runs from source, the source.
 */
export function ownProgram(module: string): string[] {
  const compiled = fileURLToPath(new URL(`../${module}.js`, import.meta.url));
  if (existsSync(compiled)) return [compiled];
  return ['--import', import.meta.resolve('tsx'), fileURLToPath(new URL(`../${module}.ts`, import.meta.url))];
}
