import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { WorkerOptions } from '@temporalio/worker';

/**
 * Where a worker gets its workflows: the bundle that the build made, or, run from source, the sources, which are bundled at
 * start.
 */
export function workflowCode(): Pick<WorkerOptions, 'workflowBundle' | 'workflowsPath'> {
  const bundle = fileURLToPath(new URL('../workflow-bundle.js', import.meta.url));
  if (existsSync(bundle)) return { workflowBundle: { codePath: bundle } };
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  return { workflowsPath: fileURLToPath(new URL(`../workflows/index.${extension}`, import.meta.url)) };
}
