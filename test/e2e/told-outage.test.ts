import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { RunFailed } from '../../src/client.js';
import { type Notice, noticeWorkflowId } from '../../src/contract.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { Proxy } from '../support/proxy.js';
import { type Receiver, startReceiver } from '../support/receiver.js';

const NAME = 'told_outage';
const KEY = '2024-03-01';

const PIPELINE = `-- repave
-- target: ${NAME}
-- partition: { column: day, by: day }
-- retry: { giveUpAfter: 20s }
SELECT :date AS day
`;

describe('a database that is lost', function () {
  this.timeout(300_000);
  let installation: Installation;
  let receiver: Receiver;
  let proxy: Proxy;

  before(async () => {
    receiver = await startReceiver();
    installation = await Installation.open({
      pipelines: { [`${NAME}.sql`]: PIPELINE },
      tables: `CREATE TABLE ${NAME} (day date NOT NULL);`,
    });
    proxy = await Proxy.before(installation.database.url);
    await installation.startWorker({
      databaseUrl: proxy.url(installation.database.url),
      env: {
        REPAVE_NOTIFY_URL: receiver.url,
        REPAVE_NOTIFY_COMMAND: 'test -e "$REPAVE_PROJECT/listens" && cat > "$REPAVE_PROJECT/told"',
      },
    });
  });
  after(async () => {
    await installation.close();
    await proxy.close();
    await receiver.close();
  });

  it('is told of while it is lost, each hook once, and recorded when it is back', async () => {
    // From the first attempt's claim on: however slow the machine, that attempt finds it lost before it is given up.
    let lost = false;
    proxy.restart({
      onMessage: ({ sql }) => {
        lost ||= sql.includes('repave.claim');
        return lost ? 'cut' : 'pass';
      },
    });
    const run = await installation.client.partition({ pipeline: NAME, key: KEY });
    await assert.rejects(run.result(), RunFailed);

    const id = `${run.runId}/partition-failed`;
    const notice = installation.temporal.workflow.getHandle(noticeWorkflowId(id));
    await until('the command to be tried again and again', async () => {
      const { raw } = await notice.describe();
      return (raw.pendingActivities?.[0]?.attempt ?? 0) >= 4;
    });
    const [told, ...more] = receiver.taken();
    assert.deepEqual(
      [more, told?.id, told?.key, told?.ledgerAway, told?.holds, told?.failures?.[0]?.type],
      [[], id, KEY, true, undefined, 'DatabaseUnavailable'],
    );

    proxy.restart({});
    // The worker has seen by then that it is back.
    await (await installation.client.partition({ pipeline: NAME, key: KEY })).result();
    writeFileSync(join(installation.project, 'listens'), '');
    await notice.result();
    const byCommand = JSON.parse(readFileSync(join(installation.project, 'told'), 'utf8')) as Notice;
    assert.deepEqual([byCommand.id, byCommand.ledgerAway], [id, undefined]);
    assert.equal(receiver.deliveries.length, 1);
    assert.deepEqual(await installation.database.sql('SELECT id FROM repave.notice ORDER BY id'), [
      { id: `${id} command` },
      { id: `${id} url` },
    ]);
  });
});
