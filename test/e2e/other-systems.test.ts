import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/common';
import { WorkflowFailedError, type WorkflowHandle } from '@temporalio/client';
import type { BackfillResult } from '../../src/contract.js';
import { Installation } from '../chaos/installation.js';
import { SALES_SUMMARY } from '../cli/repave.js';
import { createNamespace, temporal } from './temporal-cli.js';

const TABLES = `
  CREATE TABLE sales (sold_on date NOT NULL, amount numeric(10, 2) NOT NULL);
  CREATE TABLE sales_summary (sale_date date PRIMARY KEY, orders bigint NOT NULL, revenue numeric(12, 2) NOT NULL);
  INSERT INTO sales SELECT day, 12.50 FROM generate_series(date '1997-01-01', '1997-01-31', '1 day') AS day, generate_series(1, 2);`;

/** What other systems get wrong: the JSON documents given as arguments, and what the failure must name. */
const WRONG: readonly (readonly [type: string, inputs: readonly string[], names: RegExp])[] = [
  ['backfill', ['"1997-01-01"'], /1997-01-01/],
  ['backfill', ['[]'], /object/],
  ['backfill', [], /pipeline/],
  ['backfill', ['{"from":5}'], /from/],
  ['backfill', [JSON.stringify('{"pipeline":"sales_summary"}')], /text|string/],
  ['backfill', ['{"pipeline":"sales_summary","last":3}', '5'], /argument/],
  ['partition', ['{"pipeline":"sales_summary","key":"1997-01-01..1997-01-02"}'], /^key is "1997-01-01\.\.1997-01-02"/],
  ['backfil', ['{"pipeline":"sales_summary"}'], /backfil.*backfill, partition/],
];

describe('the Temporal CLI, as another system has it', function () {
  this.timeout(300_000);
  let installation: Installation;

  before(async () => {
    installation = await Installation.open({
      pipelines: { 'sales_summary.sql': SALES_SUMMARY },
      tables: TABLES,
      // The ids of children are fixed; other tests fill a sales_summary too.
      namespace: await createNamespace(),
    });
    await installation.startWorker();
  });
  after(() => installation.close());

  it('fills January with one JSON object: 31 children of known ids, with one activity each', async () => {
    const { temporal: client, namespace, taskQueue, database } = installation;
    const input = '{"pipeline":"sales_summary","from":"1997-01-01","to":"1997-01-31"}';
    const words = ['--type', 'backfill', '--task-queue', taskQueue, '--workflow-id', 'january', '--input', input];
    const started = await temporal(namespace, 'workflow', 'start', ...words);
    assert.equal(started.code, 0, started.stderr);
    const ended = await temporal(namespace, 'workflow', 'result', '--workflow-id', 'january', '--output', 'json');
    assert.equal(ended.code, 0, ended.stderr);
    const { result } = JSON.parse(ended.stdout) as { result: BackfillResult };
    assert.deepEqual([result.total, result.filled, result.rows], [31, 31, 31]);

    const { events } = await client.workflow.getHandle('january').fetchHistory();
    const children = (events ?? []).flatMap(
      (event) => event.startChildWorkflowExecutionInitiatedEventAttributes?.workflowId ?? [],
    );
    for (const child of children) {
      assert.deepEqual(await activities(client.workflow.getHandle(child)), ['fillPartition']);
    }
    const days = Array.from({ length: 31 }, (_, i) => `sales_summary/1997-01-${String(i + 1).padStart(2, '0')}`);
    assert.deepEqual(children.sort(), days);
    assert.deepEqual(
      await database.sql(
        `SELECT count(*)::int AS days, sum(orders)::int AS orders, sum(revenue) AS revenue FROM sales_summary`,
      ),
      [{ days: 31, orders: 62, revenue: '775.00' }],
    );
  });

  for (const [number, [type, inputs, names]] of WRONG.entries()) {
    it(`is told at once what is wrong with ${type} ${inputs.join(' ') || 'without input'}`, async () => {
      const { namespace, taskQueue } = installation;
      const before = await touched();
      const workflowId = `wrong/${number}`;
      const ended = await temporal(
        namespace,
        ...['workflow', 'execute', '--type', type, '--task-queue', taskQueue, '--workflow-id', workflowId],
        ...inputs.flatMap((input) => ['--input', input]),
      );
      assert.notEqual(ended.code, 0);
      assert.match(ended.stdout, /Status +FAILED/);
      const handle = installation.temporal.workflow.getHandle(workflowId);
      await assert.rejects(handle.result(), (error) => {
        assert.ok(error instanceof WorkflowFailedError && error.cause instanceof ApplicationFailure, String(error));
        assert.equal(error.cause.type, 'InvalidInput');
        assert.match(error.cause.message, names);
        return true;
      });
      const { events } = await handle.fetchHistory();
      assert.ok(!events?.some((event) => event.workflowTaskFailedEventAttributes), 'no workflow task has failed');
      assert.ok(!events?.some((event) => event.startChildWorkflowExecutionInitiatedEventAttributes), 'no child');
      assert.ok(!(await activities(handle)).includes('fillPartition'));
      assert.deepEqual(await touched(), before);
    });
  }

  /** Everything a run writes. */
  const touched = async (): Promise<unknown> =>
    installation.database.sql(`
      SELECT (SELECT count(*)::int FROM repave.backfill) AS backfills, (SELECT count(*)::int FROM repave.claim) AS claims,
             (SELECT count(*)::int FROM repave.fill) AS fills, (SELECT count(*)::int FROM repave.run_key) AS keys`);
});

/** The types of the activities that a run has scheduled. */
async function activities(handle: WorkflowHandle): Promise<string[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap((event) => event.activityTaskScheduledEventAttributes?.activityType?.name ?? []);
}
