import { TestWorkflowEnvironment } from '@temporalio/testing';

/**
 * A program, run as a process of its own so that a download that stalls can be ended: lets the SDK fetch its Temporal
 * CLI into the folder given, once (it runs it for a moment; that is the SDK's only way), and says why where it can't.
 */
const [downloadDir] = process.argv.slice(2);
try {
  const server = { executable: { type: 'cached-download', downloadDir, ttl: '1000 days' } } as const;
  const environment = await TestWorkflowEnvironment.createLocal({ server });
  await environment.teardown();
} catch (error) {
  console.error(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
}
