import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WorkflowFailedError } from '@temporalio/client';
import { ApplicationFailure } from '@temporalio/common';
import { BackfillFailed, RunFailed } from '../../src/client.js';
import {
  type BackfillInput,
  type BackfillResult,
  type Notice,
  noticeWorkflowId,
  WORKFLOW_TYPES,
} from '../../src/contract.js';
import { planRequest } from '../../src/cli/plan-request.js';
import { loadSettings } from '../../src/settings.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { isSigned, type Receiver, startReceiver } from '../support/receiver.js';
import { schema } from '../support/schemas.js';
import { withClient } from '../support/template.js';
import type { WorkerProcess } from '../support/worker.js';
import { temporal } from './temporal-cli.js';

const NAME = 'told';
/** Filled in batches. */
const LARGE = 'told_large';
const SECRET = 'geheim-4c1d';
const TOKEN = 'token-77ab';

/** Days that fail are named in `bad`, with the SQLSTATE that they fail with. */
const TABLES = `
  CREATE TABLE ${NAME} (day date NOT NULL);
  CREATE TABLE ${LARGE} (day date NOT NULL);
  CREATE TABLE bad (key text PRIMARY KEY, sqlstate text NOT NULL);
  CREATE FUNCTION judged(asked text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
  DECLARE how text;
  BEGIN
    SELECT sqlstate INTO how FROM bad WHERE key IN (asked, left(asked, 4)) LIMIT 1;
    IF FOUND THEN RAISE EXCEPTION 'no' USING ERRCODE = how; END IF;
    RETURN true;
  END $$;`;

const pipeline = (setting: string, target = NAME): string => `-- repave
-- target: ${target}
-- partition: { column: day, by: day }
-- ${setting}
SELECT :date AS day FROM held(:key), judged(:key)
`;

describe('what people act on', function () {
  this.timeout(300_000);
  let installation: Installation;
  let receiver: Receiver;
  let worker: WorkerProcess;
  /** All that there were. */
  const workers: WorkerProcess[] = [];
  const isNotice = schema('notice');

  before(async () => {
    receiver = await startReceiver();
    installation = await Installation.open({
      pipelines: { [`${NAME}.sql`]: pipeline('version: 1'), [`${LARGE}.sql`]: pipeline('batch: 25', LARGE) },
      tables: TABLES,
    });
    worker = await startWorker();
  });
  after(async () => {
    await installation.close();
    await receiver.close();
  });
  afterEach(async () => {
    receiver.answers(() => 200);
    await installation.database.sql('DELETE FROM bad');
  });

  const startWorker = async (): Promise<WorkerProcess> => {
    const started = await installation.startWorker({
      env: {
        REPAVE_NOTIFY_URL: `${receiver.url}/${TOKEN}?key=${TOKEN}`,
        REPAVE_NOTIFY_COMMAND: 'cat >> "$REPAVE_PROJECT/told" && echo >> "$REPAVE_PROJECT/told"',
        REPAVE_NOTIFY_SECRET: SECRET,
      },
    });
    workers.push(started);
    return started;
  };

  const bad = (key: string, sqlstate: string): Promise<unknown> =>
    installation.database.sql(
      'INSERT INTO bad VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET sqlstate = excluded.sqlstate',
      [key, sqlstate],
    );

  /** Fills, and returns how that ended, whichever way. */
  async function backfill(input: Partial<BackfillInput>): Promise<{ run: string; result: BackfillResult }> {
    const handle = await installation.client.backfill({ pipeline: NAME, ...input });
    const result = await handle.result().catch((error: unknown) => {
      assert.ok(error instanceof BackfillFailed && error.result, String(error));
      return error.result;
    });
    return { run: handle.runId ?? '', result };
  }

  const partition = async (key: string): Promise<string> => {
    const handle = await installation.client.partition({ pipeline: NAME, key });
    await assert.rejects(handle.result(), RunFailed);
    return handle.runId ?? '';
  };

  /** What the receiver has taken of a run, by event, once the last of so many has come. */
  const toldOf = (run: string, count: number): Promise<Notice[]> =>
    until(`${count} events of ${run}`, async () => {
      const told = receiver.taken().filter(({ id }) => id.startsWith(`${run}/`));
      return told.length >= count && told.sort((a, b) => (a.id < b.id ? -1 : 1));
    });
  const events = (told: readonly Notice[]): string[] => told.map(({ id, event }) => id.slice(id.indexOf(event)));

  it('is delivered however often the hook fails before it takes it, and holds up nothing meanwhile', async () => {
    const key = '2023-12-31';
    await (await installation.client.partition({ pipeline: NAME, key })).result();
    await bad(key, '23514');
    const answers = [503, 'hangs up', 429] as const;
    receiver.answers((_document, earlier) => answers[earlier] ?? 200);
    const run = await partition(key);
    const [told, ...more] = await toldOf(run, 1);
    assert.deepEqual(more, []);
    const { startedBy } = told?.partition ?? {};
    const { at, holds, failures, ...rest } = told ?? ({} as Notice);
    assert.deepEqual(rest, {
      id: `${run}/partition-failed`,
      event: 'partition-failed',
      namespace: installation.namespace,
      pipeline: NAME,
      key,
      partition: { id: `${NAME}/${key}`, run, startedBy },
    });
    assert.deepEqual([holds?.rows, failures?.map(({ key, type }) => [key, type])], [1, [[key, 'DataError']]]);
    assert.ok(startedBy && Date.parse(at) > Date.parse(holds?.filledAt ?? ''));
    assert.deepEqual(
      receiver.deliveries.map(({ answer }) => answer),
      [...answers, 200],
    );
  });

  it('is told of a large backfill once, not once a partition', async () => {
    await bad('2020', '23514');
    const { run, result } = await backfill({ pipeline: LARGE, from: '2020-01-01', to: '2020-07-18' });
    assert.deepEqual([result.total, result.failed], [200, 200]);
    const told = await toldOf(run, 2);
    assert.deepEqual(events(told), ['backfill-ended', 'partition-failed']);
    const [ended, failed] = told;
    assert.deepEqual(
      [ended?.outcome, ended?.counts, ended?.failures?.length, ended?.backfill?.input],
      [
        'incomplete',
        { total: 200, filled: 0, failed: 200, skipped: 0, rows: 0 },
        10,
        { pipeline: LARGE, from: '2020-01-01', to: '2020-07-18' },
      ],
    );
    assert.deepEqual(
      [failed?.counts?.failed, failed?.failures?.length, failed?.key],
      [1, 1, failed?.failures?.[0]?.key],
    );
    assert.ok(ended?.backfill?.startedBy);
    assert.equal(ended.backfill.id, failed?.backfill?.id);
  });

  it('is a backfill that pauses itself, each time; and how it ended, though it was cancelled', async () => {
    for (const key of ['2021-01-01', '2021-01-03']) await bad(key, '23514');
    const input = { pipeline: NAME, from: '2021-01-01', to: '2021-01-05', concurrency: 1, onFailure: 'pause' } as const;
    const handle = await installation.client.backfill(input);
    const run = handle.runId ?? '';
    const paused = await toldOf(run, 2);
    assert.deepEqual(events(paused), ['backfill-paused', 'partition-failed']);
    assert.equal(paused[0]?.paused?.by, 'failures');
    assert.match(paused[0]?.paused?.reason ?? '', /^1 partition has failed; the last: 2021-01-01 \(DataError\)/);
    await handle.resume();
    const again = await toldOf(run, 3);
    assert.deepEqual(events(again), ['backfill-paused', 'backfill-paused/2', 'partition-failed']);
    assert.match(again[1]?.paused?.reason ?? '', /2021-01-03/);
    await installation.hold('2021-01-04');
    await handle.resume();
    await installation.heldFills();
    await handle.cancel();
    await assert.rejects(handle.result(), BackfillFailed);
    await installation.release('2021-01-04');
    const [ended] = await toldOf(run, 4);
    assert.deepEqual([ended?.event, ended?.outcome], ['backfill-ended', 'cancelled']);
    assert.deepEqual(ended?.counts, { total: 5, filled: 1, failed: 2, skipped: 0, rows: 1 });
  });

  it('is nothing of a dry run, of one with nothing to do, and of one whose input is wrong', async () => {
    const { result } = await backfill({ from: '2019-01-01', to: '2019-01-02', dryRun: true });
    assert.equal(result.total, 2);
    assert.equal((await backfill({ from: '2021-01-02', to: '2021-01-02', only: ['failed'] })).result.total, 0);
    const wrong = await installation.client.backfill({ pipeline: NAME, from: '2019-13-01', to: '2019-13-01' });
    await assert.rejects(wrong.result(), /2019-13-01/);
    // Behind which nothing of theirs is to come any more: they have ended, and started nothing.
    const { run, result: done } = await backfill({ from: '2019-01-01', to: '2019-01-01' });
    assert.equal(done.filled, 1);
    assert.deepEqual(events(await toldOf(run, 1)), ['backfill-ended']);
    const ids = new Set(receiver.taken().map(({ backfill }) => backfill?.input?.from));
    assert.deepEqual([ids.has('2019-13-01'), ids.has('2021-01-02')], [false, false]);
  });

  it('is a heal that gives up: a day is tried three times, rests, and is told of once', async () => {
    const key = '2022-02-02';
    const input = { from: '2022-02-01', to: '2022-02-03', only: ['failed', 'missing'], tries: 3 } as const;
    const heal = () => backfill(input);
    await bad(key, '23514');
    const first = await heal();
    assert.deepEqual([first.result.filled, first.result.failed, first.result.resting], [2, 1, 0]);
    const [second, third, fourth, fifth] = [await heal(), await heal(), await heal(), await heal()];
    assert.deepEqual(
      [second, third, fourth, fifth].map(({ result: { total, failed, resting } }) => [total, failed, resting]),
      [
        [1, 1, 0],
        [1, 1, 0],
        [0, 0, 1],
        [0, 0, 1],
      ],
    );
    assert.match(
      fourth.result.notes.join(),
      /rests after 3 tries as DataError: 2022-02-02\. .*repave backfill told 2022-02-02/,
    );
    assert.equal(await failures(key), 3);
    const settings = loadSettings({ DATABASE_URL: installation.database.url }, installation.project);
    const { plan } = await planRequest(settings, { pipeline: NAME, ...input }, () => undefined);
    assert.deepEqual([plan.total, plan.resting, plan.notes], [0, 1, fourth.result.notes], 'as `repave plan` shows it');
    const told = await toldOf(third.run, 3);
    assert.deepEqual(events(told), ['backfill-ended', 'heal-gave-up', 'partition-failed']);
    const { count, first: named } = told[1]?.resting ?? { first: [] };
    assert.deepEqual([count, named.map(({ key, type, tries }) => [key, type, tries])], [1, [[key, 'DataError', 3]]]);
    await toldOf(second.run, 2);

    // A person's own backfill fills it all the same; another kind of failure counts anew.
    await bad(key, '42501');
    assert.equal((await backfill({ keys: [key], only: ['failed'] })).result.failed, 1);
    const other = await heal();
    assert.deepEqual([other.result.failures[0]?.type, other.result.resting], ['PermissionDenied', 0]);
    assert.equal((await heal()).result.failed, 1);
    assert.equal((await heal()).result.resting, 1);
    assert.equal(await failures(key), 6);
  });

  it('is tried again once the pipeline is another', async () => {
    const { database, project } = installation;
    await worker.stop();
    writeFileSync(join(project, 'pipelines', `${NAME}.sql`), pipeline('version: 2'));
    worker = await startWorker();
    const { result } = await backfill({ from: '2022-02-02', to: '2022-02-02', only: ['failed'], tries: 3 });
    assert.deepEqual([result.filled, result.resting], [1, 0]);
    assert.equal((await database.sql(`SELECT FROM ${NAME} WHERE day = '2022-02-02'`)).length, 1);
  });

  it('is told at most once more where its worker is killed before that is recorded, with the same id', async () => {
    const key = '2023-01-01';
    await bad(key, '23514');
    // Whoever would record that somebody was told waits for as long as this is held; who looks does not.
    const run = await withClient(installation.database.ownerUrl, async (client) => {
      await client.query('BEGIN; LOCK TABLE repave.notice IN SHARE MODE');
      const failed = await partition(key);
      await toldOf(failed, 1);
      await worker.kill();
      return failed;
    });
    worker = await startWorker();
    await ofNotice(`${run}/partition-failed`).result();
    const told = receiver.taken().filter(({ id }) => id.startsWith(`${run}/`));
    assert.ok(told.length === 1 || told.length === 2, `${told.length} deliveries`);
    assert.deepEqual(told.slice(1), told.slice(0, told.length - 1), 'the same document');
    assert.deepEqual(await recorded(run), [`${run}/partition-failed command`, `${run}/partition-failed url`]);
  });

  it('once told is told no more by a run that is reset', async () => {
    // What the worker that was killed was still telling comes again, and is not what is counted here.
    await allTold();
    const [{ id } = { id: '' }] = receiver.taken().slice(-1);
    const before = receiver.deliveries.length;
    const reset = await temporal(
      installation.namespace,
      ...[
        'workflow',
        'reset',
        '--workflow-id',
        noticeWorkflowId(id),
        '--type',
        'FirstWorkflowTask',
        '--reason',
        'test',
      ],
    );
    assert.equal(reset.code, 0, reset.stderr);
    await ofNotice(id).result();
    const { events } = await ofNotice(id).fetchHistory();
    const ended = (events ?? []).filter((event) => event.activityTaskCompletedEventAttributes);
    assert.equal(ended.length, 1, 'it was done again');
    assert.equal(receiver.deliveries.length, before);
  });

  it('is told by runs that have something to tell alone: anyone else is told so', async () => {
    for (const args of [[], [{}], [{ id: 'x', event: 'x', at: 'x', pipeline: NAME, ledger: 'x' }], ['x', 'y']]) {
      const { taskQueue } = installation;
      const workflowId = `test/${randomUUID()}`;
      await assert.rejects(
        installation.temporal.workflow.execute(WORKFLOW_TYPES.notice, { taskQueue, workflowId, args }),
        (error) => {
          assert.ok(error instanceof WorkflowFailedError && error.cause instanceof ApplicationFailure, String(error));
          assert.equal(error.cause.type, 'InvalidInput');
          return true;
        },
      );
    }
  });

  it('came each time signed, as its schema says, and to the command as to the URL', async () => {
    const { deliveries } = receiver;
    assert.ok(deliveries.length > 15);
    for (const { body, headers } of deliveries) {
      assert.ok(await isSigned(SECRET, body, headers['repave-signature']), body);
      assert.ok(isNotice(JSON.parse(body)), JSON.stringify(isNotice.errors));
    }
    const byCommand = readFileSync(join(installation.project, 'told'), 'utf8').trim().split('\n');
    assert.deepEqual(new Set(byCommand), new Set(deliveries.map(({ body }) => body)));
  });

  it('says neither the URL nor the secret in a history, a log or the ledger', async () => {
    const texts = [workers.map((one) => one.log()).join('')];
    assert.match(texts.join(), /answered 503/);
    const notices = receiver.taken().map(({ id }) => noticeWorkflowId(id));
    const runs = receiver.taken().flatMap(({ backfill, partition }) => backfill?.id ?? partition?.id ?? []);
    for (const id of new Set([...notices, ...runs])) {
      const { events } = await installation.temporal.workflow.getHandle(id).fetchHistory();
      texts.push(readable(events));
    }
    for (const table of ['notice', 'backfill', 'failure']) {
      const rows = await installation.database.sql(`SELECT to_jsonb(t)::text AS row FROM repave.${table} t`);
      texts.push(JSON.stringify(rows));
    }
    assert.ok(texts.length > 20 && texts[1]?.includes('partition-failed'), 'the payloads are decoded');
    for (const text of texts) for (const secret of [SECRET, TOKEN]) assert.ok(!text.includes(secret), secret);
  });

  /** Waits until all events so far were told, by either hook. */
  async function allTold(): Promise<void> {
    const { taskQueue, temporal: client } = installation;
    const query = `WorkflowType = '${WORKFLOW_TYPES.notice}' AND TaskQueue = '${taskQueue}'`;
    for await (const { workflowId } of client.workflow.list({ query })) {
      await client.workflow.getHandle(workflowId).result();
    }
  }

  const ofNotice = (id: string) => installation.temporal.workflow.getHandle(noticeWorkflowId(id));

  /** What the ledger has as told of a run. */
  async function recorded(run: string): Promise<string[]> {
    const rows = await installation.database.sql<{ id: string }>(
      "SELECT id FROM repave.notice WHERE id LIKE $1 || '/%' ORDER BY id",
      [run],
    );
    return rows.map(({ id }) => id);
  }

  /** Final failures of a partition. */
  async function failures(key: string): Promise<number> {
    const rows = await installation.database.sql('SELECT FROM repave.failure WHERE key = $1', [key]);
    return rows.length;
  }
});

/** A history as text, its payloads decoded: as JSON they are base64. */
function readable(value: unknown): string {
  return JSON.stringify(value, (name, field: unknown) =>
    name === 'data' && typeof field === 'string' ? Buffer.from(field, 'base64').toString('utf8') : field,
  );
}
