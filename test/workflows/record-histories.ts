/**
 * Records the histories that replay.test.ts replays, with the workflows as they are now. A recorded file stays as it is for
 * as long as such a run may still be going on somewhere: record under a new version's name, beside the old ones.
 *
 *     npx mocha --no-config --node-option import=tsx --require test/support/servers.ts --timeout 120000 test/workflows/record-histories.ts
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ApplicationFailure } from '@temporalio/activity';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { partitionWorkflowId } from '../../src/contract.js';
import { testTemporal } from '../support/temporal.js';
import { Harness } from './harness.js';
import { days, gate, runsOf, type Script, scripted, until, untilCancelled } from './scripted.js';

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));
const VERSION = '0.1.0';
const KEYS = days('2024-01-01', 12);

describe('recording histories', () => {
  const harness = new Harness();

  async function save(name: string, workflowId: string, runId?: string): Promise<void> {
    const { address, cli } = await testTemporal();
    const run = runId === undefined ? [] : ['--run-id', runId];
    const show = ['workflow', 'show', '--address', address, '--workflow-id', workflowId, ...run, '--output', 'json'];
    const shown = execFileSync(cli, show, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
    // Stack traces name files by where this checkout lies; the recordings lie in every checkout.
    const history: unknown = JSON.parse(shown.replaceAll(CHECKOUT, ''));
    const file = new URL(`../histories/${VERSION}-${name}.json`, import.meta.url);
    writeFileSync(file, `${JSON.stringify(history, undefined, 1)}\n`);
  }

  async function backfill(
    script: Script,
    ...more: unknown[]
  ): Promise<[WorkflowHandleWithFirstExecutionRunId, ReturnType<typeof scripted>]> {
    const calls = scripted({ keys: KEYS, ...script });
    return [await harness.backfill(calls, ...more), calls];
  }

  it('continue-as-new, with one failed partition', async () => {
    const fill = async (key: string): Promise<void> => {
      if (key === KEYS[2]) throw ApplicationFailure.nonRetryable('bad', 'DataError', { attempt: 1 });
    };
    const [handle, calls] = await backfill({ page: 4, fill }, { partitionsPerRun: 5 });
    await handle.result().catch(() => undefined);
    const runs = await runsOf(harness.client, handle);
    for (const [index, { runId }] of runs.entries())
      await save(`backfill-continued-${index + 1}`, handle.workflowId, runId);
    await save('partition-failed', partitionWorkflowId(calls.pipeline, KEYS[2]!));
    await save('partition-filled', partitionWorkflowId(calls.pipeline, KEYS[0]!));
  });

  it('cancel in the middle', async () => {
    const [handle, calls] = await backfill({ fill: untilCancelled });
    await until(() => calls.calls.filter((call) => call.startsWith('fillPartition')).length === 3);
    await handle.cancel();
    await handle.result().catch(() => undefined);
    await save('backfill-cancelled', handle.workflowId);
    await save('partition-cancelled', partitionWorkflowId(calls.pipeline, KEYS[0]!));
  });

  it('cancel after continue-as-new', async () => {
    const fill = async (key: string): Promise<void> => {
      if (key === KEYS[7]) await untilCancelled();
    };
    const [handle, calls] = await backfill({ fill, plan: { concurrency: 1 } }, { partitionsPerRun: 6 });
    await until(() => calls.calls.includes(`fillPartition ${KEYS[7]}`));
    await harness.client.workflow.getHandle(handle.workflowId).cancel();
    await harness.client.workflow
      .getHandle(handle.workflowId)
      .result()
      .catch(() => undefined);
    await save('backfill-continued-cancelled', handle.workflowId);
  });

  it('a partition that another run fills', async () => {
    const held = gate();
    let first = true;
    const calls = scripted({
      keys: KEYS.slice(0, 3),
      fill: async (key) => {
        if (key !== KEYS[0] || !first) return;
        first = false;
        await held.opened;
      },
      control: {
        awaitPartition: async () => {
          held.open();
          await other.result();
          return { wanted: true };
        },
      },
    });
    const { pipeline } = calls;
    const id = partitionWorkflowId(pipeline, KEYS[0]!);
    const other = await harness.start('partition', calls, [{ pipeline, key: KEYS[0] }], id);
    await until(() => calls.calls.includes(`fillPartition ${KEYS[0]}`));
    const { taskQueue } = await other.describe();
    const handle = await harness.client.workflow.start('backfill', {
      taskQueue,
      workflowId: `backfill/${pipeline}`,
      args: [{ pipeline }],
    });
    await handle.result();
    await save('backfill-waited', handle.workflowId);
    await save('partition-alone', id, other.firstExecutionRunId);
  });

  it('an unknown type', async () => {
    const handle = await harness.start('backfil', scripted(), [{}]);
    await handle.result().catch(() => undefined);
    await save('unknown-type', handle.workflowId);
  });
});
