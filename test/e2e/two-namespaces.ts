import { connectRepave, type RepaveClient } from '../../src/client.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import { Installation } from '../chaos/installation.js';
import { testTemporal } from '../support/temporal.js';
import { createProject } from '../support/worker.js';
import { uniqueQueue } from '../support/workflow.js';
import { createNamespace } from './temporal-cli.js';

export interface TwoNamespaces {
  readonly installation: Installation;
  /** In a namespace of its own, with a worker that fills from the source `two`. */
  readonly other: RepaveClient;
  close(): Promise<void>;
}

/**
 * One target that two namespaces fill by a pipeline of one name, from the sources `one` and `two`: nothing in Temporal knows of
 * both. `query` is the pipeline's file.
 */
export async function openTwoNamespaces(pipeline: string, query: (source: string) => string): Promise<TwoNamespaces> {
  const { address } = await testTemporal();
  const [installation, namespace, project] = await Promise.all([
    Installation.open({
      pipelines: { [`${pipeline}.sql`]: query('one') },
      tables: 'CREATE TABLE target (day date NOT NULL, source text NOT NULL, number int NOT NULL);',
    }),
    createNamespace(),
    createProject({ [`${pipeline}.sql`]: query('two') }),
  ]);
  const settings = loadSettings(onlyThisServer(address));
  const other = await connectRepave({ settings, namespace, taskQueue: uniqueQueue() });
  await installation.startWorker();
  const env = { TEMPORAL_NAMESPACE: namespace };
  await installation.startWorker({ project, taskQueue: other.taskQueue, env });
  return {
    installation,
    other,
    async close() {
      await other.close();
      await installation.close();
    },
  };
}
