import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ScheduleOverlapPolicy } from '@temporalio/client';
import { type Notice, WORKFLOW_TYPES } from '../../src/contract.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { type Receiver, startReceiver } from '../support/receiver.js';
import { schema } from '../support/schemas.js';

const NAME = 'told_unplanned';

const PIPELINE = `-- repave
-- target: ${NAME}
-- partition: { column: day, by: day }
SELECT :date AS day
`;

describe('a scheduled run that fails before it has a plan', function () {
  this.timeout(300_000);
  let installation: Installation;
  let receiver: Receiver;
  const isNotice = schema('notice');

  before(async () => {
    receiver = await startReceiver();
    installation = await Installation.open({
      pipelines: { [`${NAME}.sql`]: PIPELINE },
      tables: `CREATE TABLE ${NAME} (day date NOT NULL);`,
    });
    await installation.startWorker({
      env: {
        REPAVE_NOTIFY_URL: receiver.url,
        REPAVE_NOTIFY_COMMAND: 'cat >> "$REPAVE_PROJECT/told" && echo >> "$REPAVE_PROJECT/told"',
      },
    });
  });
  after(async () => {
    await installation.close();
    await receiver.close();
  });

  const told = (id: string): Promise<Notice> =>
    until(`an event of ${id}`, async () => receiver.taken().find(({ backfill }) => backfill?.id.startsWith(id)));

  const INPUTS = {
    'since its input is wrong': [{ pipeline: NAME, last: 0 }, /^InvalidInput: .*last/],
    'since no worker has its pipeline': [{ pipeline: 'told_gone', last: 1 }, /^UnknownPipeline: .*told_gone/],
  } as const;
  for (const [why, [input, reason]] of Object.entries(INPUTS)) {
    it(`${why}: is told of, by each hook, as nobody waits for its answer`, async () => {
      const { temporal, taskQueue } = installation.client;
      const id = `${taskQueue}/${input.pipeline}`;
      const schedule = await temporal.schedule.create({
        scheduleId: id,
        spec: {},
        action: {
          type: 'startWorkflow',
          workflowType: WORKFLOW_TYPES.backfill,
          workflowId: id,
          taskQueue,
          args: [input],
        },
      });
      try {
        await schedule.trigger(ScheduleOverlapPolicy.ALLOW_ALL);
        const document = await told(id);
        assert.ok(isNotice(document), JSON.stringify(isNotice.errors));
        const { at, reason: said, backfill, ...notice } = document;
        assert.ok(Date.parse(at) <= Date.now());
        assert.match(said ?? '', reason);
        const run = backfill?.run ?? '';
        assert.deepEqual(notice, {
          id: `${run}/backfill-ended`,
          event: 'backfill-ended',
          namespace: installation.namespace,
          pipeline: input.pipeline,
          outcome: 'failed',
        });
        assert.deepEqual(Object.keys(backfill ?? {}), ['id', 'run']);
        await assert.rejects(temporal.workflow.getHandle(backfill?.id ?? '', run).result());
        await temporal.workflow.getHandle(`notice/${notice.id}`).result();
        const byUrl = receiver.taken().filter(({ id }) => id === notice.id);
        const byCommand = readFileSync(join(installation.project, 'told'), 'utf8')
          .split('\n')
          .filter((line) => line.includes(run));
        assert.deepEqual([byUrl.length, byCommand.length], [1, 1]);
      } finally {
        await schedule.delete();
      }
    });
  }
});
