import assert from 'node:assert/strict';
import type { WorkflowHandle } from '@temporalio/client';
import {
  WORKFLOW_TYPES,
  type BackfillInput,
  type BackfillResult,
  type Progress,
  type Steered,
} from '../../src/contract.js';
import { Installation } from './installation.js';
import { until } from './until.js';

/** Fails for as long as the table `broken` has a row. */
const PIPELINE = `-- repave
-- target: daily
-- partition: { column: day, by: day }
-- start: 2024-01-01
SELECT :date AS day, 1 / (SELECT 1 - count(*) FROM broken) AS n FROM held(:key)
`;

type Events = NonNullable<Awaited<ReturnType<WorkflowHandle['fetchHistory']>>['events']>;

describe('a backfill that is steered', function () {
  this.timeout(600_000);
  let installation: Installation;

  beforeEach(async () => {
    installation = await Installation.open({
      pipelines: { 'steered.sql': PIPELINE },
      tables: 'CREATE TABLE broken (row int); CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL);',
    });
  });
  afterEach(() => installation.close());

  it('pauses itself once its limit of failures is reached, says why, and goes on where it was once that is mended', async () => {
    const { client, database } = installation;
    await installation.startWorker();
    await database.sql('INSERT INTO broken VALUES (1)');
    const id = await start({ ...RANGE, concurrency: 4, onFailure: 'pause', maxFailures: 3 });
    const handle = client.temporal.workflow.getHandle(id);

    const stuck = await until('a backfill that has paused itself', async () => {
      const now = await handle.query<Progress>('progress');
      return now.phase === 'paused' && now.running.length === 0 && now;
    });
    assert.ok(stuck.failed >= 3 && stuck.failed <= 3 + 4, `${stuck.failed} failed`);
    assert.equal(stuck.filled, 0);
    assert.equal(stuck.paused?.by, 'failures');
    assert.match(stuck.paused?.reason ?? '', /DataError/);
    assert.equal(await childrenOf(id), stuck.failed);

    await database.sql('DELETE FROM broken');
    await handle.executeUpdate<Steered, [object]>('retryFailed', { args: [{}] });
    await handle.executeUpdate<Steered, [object]>('resume', { args: [{}] });
    const { total, filled, failed } = (await handle.result()) as BackfillResult;
    assert.deepEqual({ total, filled, failed }, { total: 40, filled: 40, failed: 0 });
    assert.deepEqual(await filledTimes(), [{ keys: 40, fills: 40 }]);
  });

  it('never fills more at once than it is set to, over three workers, kills and continue-as-new', async () => {
    const { client } = installation;
    const [first] = await Promise.all([1, 2, 3].map(() => installation.startWorker()));
    await installation.hold('2024-01-20');
    const id = await start({ ...RANGE, concurrency: 1 }, { partitionsPerRun: 7 });
    const handle = client.temporal.workflow.getHandle(id);
    await installation.heldFills(1);
    await first?.kill();
    const before = await chain(id);
    await handle.executeUpdate<Steered, [object]>('setConcurrency', { args: [{ concurrency: 5 }] });
    await installation.release('2024-01-20');
    await until('the last but ten', async () => (await filledTimes())[0]!.keys >= 30);
    await installation.startWorker();
    assert.equal(((await handle.result()) as BackfillResult).filled, 40);

    assert.ok(before.length > 1, 'it has continued as new');
    const slow = await Promise.all(before.map(async (run) => mostAtOnce(await eventsOf(run, id), 'until it is set')));
    assert.equal(Math.max(...slow), 1);
    const all = await Promise.all((await chain(id)).map(async (run) => mostAtOnce(await eventsOf(run, id))));
    assert.ok(Math.max(...all) > 1 && Math.max(...all) <= 5, `at most ${all.join(', ')} at once`);
    assert.deepEqual(await filledTimes(), [{ keys: 40, fills: 40 }]);
  });

  const RANGE = { pipeline: 'steered', from: '2024-01-01', to: '2024-02-09' } as const;

  async function start(input: BackfillInput, continuation?: object): Promise<string> {
    const { temporal, taskQueue } = installation.client;
    const workflowId = `backfill/${taskQueue}`;
    await temporal.workflow.start(WORKFLOW_TYPES.backfill, {
      workflowId,
      taskQueue,
      args: continuation ? [input, continuation] : [input],
    });
    return workflowId;
  }

  /** Runs of a backfill's chain, in no order. */
  async function chain(id: string): Promise<string[]> {
    const runs: string[] = [];
    const first = await installation.temporal.workflow.getHandle(id).describe();
    for (let runId: string | undefined = first.raw.workflowExecutionInfo?.firstRunId ?? undefined; runId;) {
      runs.push(runId);
      const { events } = await installation.temporal.workflow.getHandle(id, runId).fetchHistory();
      runId = events?.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId ?? undefined;
    }
    return runs;
  }

  async function eventsOf(runId: string, id: string): Promise<Events> {
    return (await installation.temporal.workflow.getHandle(id, runId).fetchHistory()).events ?? [];
  }

  /** Children that a chain's runs have started. */
  async function childrenOf(id: string): Promise<number> {
    let children = 0;
    for (const run of await chain(id)) {
      children += (await eventsOf(run, id)).filter(
        (event) => event.startChildWorkflowExecutionInitiatedEventAttributes,
      ).length;
    }
    return children;
  }

  /** Partitions that were filled, and their committed fills. */
  async function filledTimes(): Promise<{ keys: number; fills: number }[]> {
    return installation.database.sql(
      'SELECT count(DISTINCT key)::int AS keys, count(*)::int AS fills FROM repave.fill',
    );
  }
});

/** The most children that ran at once in a run, as its history has it; or only until its concurrency was set. */
function mostAtOnce(events: Events, until?: 'until it is set'): number {
  let now = 0;
  let most = 0;
  for (const event of events) {
    if (until && event.workflowExecutionUpdateAcceptedEventAttributes) break;
    if (event.startChildWorkflowExecutionInitiatedEventAttributes) now += 1;
    if (
      event.childWorkflowExecutionCompletedEventAttributes ??
      event.childWorkflowExecutionFailedEventAttributes ??
      event.childWorkflowExecutionCanceledEventAttributes ??
      event.childWorkflowExecutionTimedOutEventAttributes ??
      event.childWorkflowExecutionTerminatedEventAttributes
    ) {
      now -= 1;
    }
    most = Math.max(most, now);
  }
  return most;
}
