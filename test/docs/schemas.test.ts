import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { contractSchemas, SCHEMAS_FOLDER } from '../../scripts/contract-schemas.js';

const root = fileURLToPath(new URL('../..', import.meta.url));

describe('the JSON Schemas in the docs', () => {
  it('say what the contract’s types say today: else run `npm run schemas`', async () => {
    const texts = await contractSchemas();
    assert.ok(texts.size > 0);
    for (const [path, text] of texts) {
      const file = join(root, path);
      assert.equal(existsSync(file) ? readFileSync(file, 'utf8') : 'missing', text, path);
    }
    const files = readdirSync(join(root, SCHEMAS_FOLDER)).map((name) => `${SCHEMAS_FOLDER}/${name}`);
    assert.deepEqual(files.sort(), [...texts.keys()].sort());
  });
});
