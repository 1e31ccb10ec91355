import type { FileToRead } from './invalid-pipeline.js';
import type { Pipeline } from './pipeline.js';

/**
 * Why a pipeline's `formerly` cannot be: a ledger can be carried over only from a name that nothing has any more. Undefined where
 * it can. `files` are those of its folder, by the names that they give.
 */
export function standingFormer(
  { name, formerly }: Pick<Pipeline, 'name' | 'formerly'>,
  files: ReadonlyMap<string, readonly FileToRead[]>,
): string | undefined {
  if (formerly === undefined) return undefined;
  if (formerly === name) return '`formerly` is its own name: expected the name it had before it was renamed.';
  const standing = files.get(formerly)?.[0];
  return (
    standing && `\`formerly\` is ${formerly}, which ${standing.shown} still is: remove that file, or \`formerly\`.`
  );
}
