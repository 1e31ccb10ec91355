// Builds dist/, or the folder given: compiled sources, the ledger's migrations, and the workflow bundle that a production
// worker loads.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
process.chdir(root);
const out = process.argv[2] ?? 'dist';

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
