/**
 * Records the histories that replay.test.ts replays, with the workflows as they are now. A recorded file stays as it is for
 * as long as such a run may still be going on somewhere: record under a new version's name, beside the old ones.
 *
 *     NODE_OPTIONS="--import tsx" npx mocha --no-config --require test/support/servers.ts --timeout 120000 --grep steered test/workflows/record-histories.ts
 */
import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { ApplicationFailure, Context } from '@temporalio/activity';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import {
  type BackfillInput,
  healScheduleId,
  noticeWorkflowId,
  partitionWorkflowId,
  type Progress,
  scheduledRunId,
  scheduledWorkflowId,
  scheduleId as dayScheduleId,
} from '../../src/contract.js';
import { resultOfRun } from '../support/scheduled-runs.js';
import { testTemporal } from '../support/temporal.js';
import { KEYS as KEYS_OF_EACH, withDownstream } from './downstream-script.js';
import { Harness } from './harness.js';
import { days, gate, POLICY, runsOf, type Script, scripted, type Scripted, until, untilCancelled } from './scripted.js';

const CHECKOUT = fileURLToPath(new URL('../../', import.meta.url));
/** What the version before wrote is recorded under its own name, and stays. */
const FIRST = '0.1.0';
const STEERED = '0.2.0';
const TOLD = '0.3.0';
const WAITING = '0.4.0';
const KEYS = days('2024-01-01', 12);

describe('recording histories', () => {
  const harness = new Harness();

  async function save(name: string, workflowId: string, runId?: string, version = FIRST): Promise<void> {
    const { address, cli } = await testTemporal();
    const run = runId === undefined ? [] : ['--run-id', runId];
    const show = ['workflow', 'show', '--address', address, '--workflow-id', workflowId, ...run, '--output', 'json'];
    const shown = execFileSync(cli, show, { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 });
    // Stack traces name files by where this checkout lies; the recordings lie in every checkout.
    const history: unknown = JSON.parse(shown.replaceAll(CHECKOUT, ''));
    const file = new URL(`../histories/${version}-${name}.json`, import.meta.url);
    writeFileSync(file, `${JSON.stringify(history, undefined, 1)}\n`);
  }

  async function backfill(
    script: Script,
    ...more: unknown[]
  ): Promise<[WorkflowHandleWithFirstExecutionRunId, ReturnType<typeof scripted>]> {
    const calls = scripted({ keys: KEYS, ...script });
    return [await harness.backfill(calls, ...more), calls];
  }

  /** The first partition, started alone, once its fill has begun. */
  async function firstAlone(calls: Scripted): Promise<WorkflowHandleWithFirstExecutionRunId> {
    const { pipeline } = calls;
    const id = partitionWorkflowId(pipeline, KEYS[0]!);
    const other = await harness.start('partition', calls, [{ pipeline, key: KEYS[0] }], id);
    await until(() => calls.calls.includes(`fillPartition ${KEYS[0]}`));
    return other;
  }

  /** A backfill on the workers of a run that goes on. */
  async function beside(
    other: WorkflowHandleWithFirstExecutionRunId,
    { pipeline }: Scripted,
  ): Promise<WorkflowHandleWithFirstExecutionRunId> {
    const { taskQueue } = await other.describe();
    const workflowId = `backfill/${pipeline}`;
    return harness.client.workflow.start('backfill', { taskQueue, workflowId, args: [{ pipeline }] });
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
    const other = await firstAlone(calls);
    const handle = await beside(other, calls);
    await handle.result();
    await save('backfill-waited', handle.workflowId);
    await save('partition-alone', other.workflowId, other.firstExecutionRunId);
  });

  it('batches, continued as new, with one failed and some not ready', async () => {
    const tried = new Set<string>();
    const [handle, calls] = await backfill(
      {
        plan: { batch: 4, asksReady: true, concurrency: 2 },
        batch: async ({ pipeline, keys }) =>
          keys.map((key) => {
            if (key === KEYS[1]) return { key, type: 'DataError', message: 'bad' };
            const result = { pipeline, key, rows: 1, deleted: 0, seconds: 0, warnings: [] };
            const first = !tried.has(key);
            tried.add(key);
            return first && (key === KEYS[2] || key === KEYS[3])
              ? { ...result, notReady: { retryAfterMs: 1_000 } }
              : result;
          }),
      },
      { partitionsPerRun: 8 },
    );
    await handle.result().catch(() => undefined);
    const runs = await runsOf(harness.client, handle);
    for (const [index, { runId }] of runs.entries())
      await save(`backfill-batches-continued-${index + 1}`, handle.workflowId, runId);
    await save('batch-filled', partitionWorkflowId(calls.pipeline, `${KEYS[0]}..${KEYS[3]}`));
  });

  it('batches, cancelled', async () => {
    const [handle, calls] = await backfill({ plan: { batch: 6 }, batch: untilCancelled });
    await until(() => calls.calls.filter((call) => call.startsWith('fillBatch')).length === 2);
    await handle.cancel();
    await handle.result().catch(() => undefined);
    await save('backfill-batches-cancelled', handle.workflowId);
    await save('batch-cancelled', partitionWorkflowId(calls.pipeline, `${KEYS[0]}..${KEYS[5]}`));
  });

  it('a batch that is given up', async () => {
    const [handle, calls] = await backfill({
      plan: { batch: 12 },
      batch: async () => {
        throw ApplicationFailure.nonRetryable('no rights', 'PermissionDenied', { attempt: 1 });
      },
      control: {
        endBatch: async ({ keys, failure }) => ({
          outcomes: failure ? keys.map((key) => ({ key, type: failure.type, message: failure.message })) : [],
        }),
      },
    });
    await handle.result().catch(() => undefined);
    await save('batch-given-up', partitionWorkflowId(calls.pipeline, `${KEYS[0]}..${KEYS[11]}`));
  });

  it('partitions that are not ready, one of them to the end', async () => {
    const policy = { ledger: 'l', fingerprint: 'f', timeoutMs: 60_000, giveUpAfterMs: 4_000 };
    let tries = 0;
    const [handle] = await backfill({
      keys: KEYS.slice(0, 4),
      plan: { asksReady: true, concurrency: 2, policy },
      fill: async (key, { policy: { notReady } }) => {
        if (key === KEYS[1] && tries++ === 0) return { retryAfterMs: 1_000 };
        if (key !== KEYS[0]) return 1;
        if (notReady === 'fail') throw ApplicationFailure.nonRetryable('not there', 'SourceNotReady');
        return { retryAfterMs: 1_000 };
      },
    });
    await handle.result().catch(() => undefined);
    await save('backfill-not-ready', handle.workflowId);
  });

  it('an unknown type', async () => {
    const handle = await harness.start('backfil', scripted(), [{}]);
    await handle.result().catch(() => undefined);
    await save('unknown-type', handle.workflowId);
  });

  describe('steered', () => {
    async function saveRuns(name: string, handle: WorkflowHandleWithFirstExecutionRunId): Promise<void> {
      await harness.client.workflow
        .getHandle(handle.workflowId)
        .result()
        .catch(() => undefined);
      for (const [index, { runId }] of (await runsOf(harness.client, handle)).entries())
        await save(`${name}-${index + 1}`, handle.workflowId, runId, STEERED);
    }

    it('every lever, over continue-as-new, with a retry', async () => {
      const failed = new Set<string>();
      const [handle, calls] = await backfill(
        {
          plan: { policy: POLICY, concurrency: 1 },
          fill: async (key) => {
            if (key !== KEYS[1] || failed.has(key)) return;
            failed.add(key);
            throw ApplicationFailure.nonRetryable('bad', 'DataError', { attempt: 1 });
          },
          control: {
            failedKeys: async ({ after }) => [...failed].filter((key) => after === undefined || key > after),
          },
        },
        { partitionsPerRun: 5 },
      );
      const latest = harness.client.workflow.getHandle(handle.workflowId);
      const pull = (lever: string, input: unknown): Promise<unknown> =>
        latest.executeUpdate<unknown, [unknown]>(lever, { args: [input] });
      await until(() => calls.requests('recordFailure').length === 1);
      await pull('pause', { reason: 'a look' });
      await latest.signal('steer', { id: 'x', lever: 'setConcurrency', input: { concurrency: 3 } });
      await pull('retryFailed', {});
      await pull('resume', {});
      await saveRuns('backfill-levers', handle);
    });

    it('a canary that pauses, then a stop', async () => {
      const [handle, calls] = await backfill({
        plan: { policy: POLICY, canary: 2, onFailure: 'pause', concurrency: 2 },
        fill: async (key) => {
          if (key === KEYS[0]) throw ApplicationFailure.nonRetryable('bad', 'DataError', { attempt: 1 });
        },
      });
      await until(() => calls.requests('noteBackfill').length > 0);
      await handle.executeUpdate<unknown, [unknown]>('stop', { args: [{}] });
      await saveRuns('backfill-canary-stopped', handle);
    });

    it('a partition that another run fills, behind the others', async () => {
      const held = gate();
      let first = true;
      const calls = scripted({
        keys: KEYS.slice(0, 3),
        plan: { policy: POLICY },
        fill: async (key) => {
          if (key !== KEYS[0] || !first) return;
          first = false;
          await held.opened;
        },
        control: {
          awaitPartitions: async ({ runs }) => {
            held.open();
            await other.result();
            return { ended: runs.map(({ id, keys }) => ({ id, wantedKeys: keys })) };
          },
        },
      });
      const other = await firstAlone(calls);
      const handle = await beside(other, calls);
      await saveRuns('backfill-busy-line', handle);
    });
  });

  it('told: a failure, a pause and the end, over continue-as-new', async () => {
    const run = randomUUID();
    const [handle, calls] = await backfill(
      {
        plan: { policy: POLICY, notifies: true, run, tries: 1, onFailure: 'pause', concurrency: 2 },
        fill: async (key) => {
          if (key === KEYS[0]) throw ApplicationFailure.nonRetryable('bad', 'DataError', { attempt: 1 });
        },
      },
      { partitionsPerRun: 5 },
    );
    await until(() => calls.requests('tell').some(({ event }) => event === 'backfill-paused'));
    await handle.executeUpdate<unknown, [unknown]>('resume', { args: [{}] });
    await harness.client.workflow
      .getHandle(handle.workflowId)
      .result()
      .catch(() => undefined);
    for (const [index, { runId }] of (await runsOf(harness.client, handle)).entries())
      await save(`backfill-told-${index + 1}`, handle.workflowId, runId, TOLD);
    const id = noticeWorkflowId(`${run}/backfill-ended`);
    await harness.client.workflow.getHandle(id).result();
    await save('notice', id, undefined, TOLD);
  });

  it('scheduled: a run of a schedule, its heal, and one that is stopped while it waits for the run', async () => {
    const held = gate();
    const calls = scripted({ keys: KEYS.slice(0, 2) });
    const control = {
      ...calls.control,
      awaitRun: async ({ id }: { readonly id: string }) => {
        if (id.includes('T03:')) await Promise.race([held.opened, Context.current().cancelled]);
        return { found: true };
      },
    };
    const { pipeline } = calls;
    const taskQueue = await harness.workers({ ...calls, control });
    for (const [kind, scheduleId] of [
      ['scheduled', dayScheduleId(pipeline)],
      ['heal', healScheduleId(pipeline)],
    ] as const) {
      const { schedule } = harness.client;
      const handle = await schedule.create({
        scheduleId,
        spec: { cronExpressions: ['0 2,3 * * *'] },
        policies: { overlap: 'ALLOW_ALL' },
        action: {
          type: 'startWorkflow',
          workflowType: 'backfill',
          workflowId: scheduledWorkflowId(pipeline, kind),
          taskQueue,
          args: [{ pipeline, last: 2 }],
        },
        state: { paused: true },
      });
      const at = new Date('2024-03-01T02:00:00Z');
      await handle.backfill({ start: new Date(at.getTime() - 1_000), end: at });
      const id = scheduledRunId(pipeline, kind, at);
      await resultOfRun(harness.client, id);
      await save(`backfill-${kind}`, id, undefined, TOLD);
      if (kind === 'heal') {
        const later = new Date('2024-03-01T03:00:00Z');
        await handle.backfill({ start: new Date(later.getTime() - 1_000), end: later });
        const waits = scheduledRunId(pipeline, kind, later);
        await until(async () => (await pendingOf(waits)) === 'awaitRun');
        await harness.client.workflow.getHandle(waits).executeUpdate('stop', { args: [{}] });
        await resultOfRun(harness.client, waits);
        await save('backfill-heal-stopped', waits, undefined, TOLD);
      }
      await handle.delete();
    }
    held.open();
  });

  /** The activity that a run waits in. */
  async function pendingOf(id: string): Promise<string | undefined> {
    const { raw } = await harness.client.workflow
      .getHandle(id)
      .describe()
      .catch(() => ({ raw: undefined }));
    return raw?.pendingActivities?.[0]?.activityType?.name ?? undefined;
  }

  it('downstream: two backfills with a pause between them, then continue-as-new', async () => {
    const held = gate();
    const { names, script } = withDownstream({}, (name) => (name.startsWith('first') ? held.opened : undefined));
    const calls = scripted(script);
    const handle = await harness.backfill(calls, { partitionsPerRun: KEYS_OF_EACH.length });
    await until(() =>
      calls.requests('planBackfill').some(({ arguments: [input] }) => (input as BackfillInput).pipeline === names[0]),
    );
    await handle.executeUpdate('pause', { args: [{}] });
    held.open();
    await until(async () => (await handle.query<Progress>('progress')).downstream === undefined);
    await handle.executeUpdate('retryFailed', { args: [{}] });
    await handle.executeUpdate('resume', { args: [{}] });
    await harness.client.workflow.getHandle(handle.workflowId).result();
    for (const [index, { runId }] of (await runsOf(harness.client, handle)).entries())
      await save(`backfill-downstream-${index + 1}`, handle.workflowId, runId, TOLD);
  });

  it('waiting: a pause that is not counted, in a heal that leaves what is not ready', async () => {
    const held = gate();
    const reason = 'the shop has not closed yet';
    const [handle] = await backfill({
      keys: KEYS.slice(0, 3),
      plan: { asksReady: true, concurrency: 1, leavesAfterMs: 0, policy: POLICY },
      fill: async (key) => {
        if (key === KEYS[0]) return { retryAfterMs: 60_000, reason };
        if (key === KEYS[1]) await held.opened;
        return 1;
      },
    });
    await until(async () => (await handle.query<Progress>('progress')).running.some(({ keys }) => keys === KEYS[1]));
    await handle.executeUpdate('pause', { args: [{}] });
    held.open();
    await until(async () => (await handle.query<Progress>('progress')).filled === 1);
    await handle.executeUpdate('resume', { args: [{}] });
    await handle.result();
    await save('backfill-left', handle.workflowId, undefined, WAITING);
  });

  it('waiting: a cancel while the last word is said', async () => {
    const [ending, said] = [gate(), gate()];
    const [handle] = await backfill({
      keys: KEYS.slice(0, 1),
      fill: async () => {
        throw ApplicationFailure.nonRetryable('bad', 'DataError', { attempt: 1 });
      },
      control: {
        endBackfill: async () => {
          ending.open();
          await said.opened;
          return undefined;
        },
      },
    });
    await ending.opened;
    await handle.cancel();
    await handle.executeUpdate('resume', { args: [{}] });
    said.open();
    await handle.result().catch(() => undefined);
    await save('backfill-cancelled-late', handle.workflowId, undefined, WAITING);
  });
});
