/** Writes the golden files of the live view and the captures in docs anew: `npm run frames`. Then read the difference. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { captures, goldenFiles } from './scenes.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

for (const [folder, files] of [
  ['test/fixtures/frames', goldenFiles()],
  ['docs/captures', captures()],
] as const) {
  mkdirSync(join(ROOT, folder), { recursive: true });
  for (const [name, text] of files) writeFileSync(join(ROOT, folder, name), text);
}
