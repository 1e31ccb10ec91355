import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const FOLDER = fileURLToPath(new URL('../../docs/schemas', import.meta.url));

/** Judges values by one of the documents in docs/schemas, as a caller's own validator would. */
export function schema(name: string): ValidateFunction {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false, allErrors: true });
  addFormats.default(ajv);
  return ajv.compile(JSON.parse(readFileSync(`${FOLDER}/${name}.json`, 'utf8')) as object);
}
