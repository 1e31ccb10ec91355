import type { Settings } from '../settings.js';
import { filesAtHand } from './files-at-hand.js';
import { counted } from './format.js';

/** The project's pipelines, in order, that no worker has registered in any ledger: none where there are no files at hand. */
export async function unregisteredPipelines(
  settings: Settings,
  registered: readonly { readonly name: string }[],
): Promise<string[]> {
  const { pipelines, broken } = await filesAtHand(settings);
  const known = new Set(registered.map(({ name }) => name));
  return [...pipelines.keys(), ...broken.keys()].filter((name) => !known.has(name)).sort();
}

/** What is said of them. */
export function unregisteredText(names: readonly string[]): string {
  return (
    `${counted(names.length, 'pipeline')} of this project that no worker has registered: ${names.join(', ')}. ` +
    'A worker registers those it can when it starts, and tries again when one is filled; `repave check` says what stands in the way.'
  );
}
