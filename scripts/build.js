// Builds dist/, or the folder given: compiled sources, the ledger's migrations, and the workflow bundle that a production
// worker loads.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** `npx repave` in a checkout prepares the package each time npm links it: nobody is to wait for what is there. */
const UNLESS_FRESH = '--unless-fresh';

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
const [given] = process.argv.slice(2);
const out = given === undefined || given === UNLESS_FRESH ? 'dist' : given;
if (given === UNLESS_FRESH && isFresh(`${out}/workflow-bundle.js`)) process.exit(0);

const compiled = spawnSync(
  process.execPath,
  ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.json', '--outDir', out],
  { stdio: 'inherit' },
);
if (compiled.status !== 0) process.exit(compiled.status ?? 1);
mkdirSync(`${out}/warehouse/migrations`, { recursive: true });
cpSync('src/warehouse/migrations', `${out}/warehouse/migrations`, { recursive: true });

const { bundleWorkflowCode } = await import('@temporalio/worker');
const quiet = { log() {}, trace() {}, debug() {}, info() {}, warn: console.warn, error: console.error };
const { code } = await bundleWorkflowCode({ workflowsPath: `${root}${out}/workflows/index.js`, logger: quiet });
writeFileSync(`${out}/workflow-bundle.js`, code);

/** Whether the last thing that a build writes is newer than all that it is made of. */
function isFresh(last) {
  const built = statSync(last, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const sources = readdirSync('src', { recursive: true }).map((path) => join('src', path));
  return ['src', ...sources, 'package-lock.json', 'tsconfig.json'].every((path) => statSync(path).mtimeMs < built);
}
