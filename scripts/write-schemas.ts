/** Writes the contract's JSON Schemas to docs/schemas, and nothing else may stand there. */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { contractSchemas, SCHEMAS_FOLDER } from './contract-schemas.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const texts = await contractSchemas();
rmSync(join(root, SCHEMAS_FOLDER), { recursive: true, force: true });
mkdirSync(join(root, SCHEMAS_FOLDER), { recursive: true });
for (const [path, text] of texts) writeFileSync(join(root, path), text);
