import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { connectRepave, type RepaveClient } from '../../src/client.js';
import type { BackfillResult, Progress, Steered } from '../../src/contract.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import { until } from '../chaos/until.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { testTemporal } from '../support/temporal.js';
import { BAD_AND_BRAKE, dailyPipeline } from './days-that-fail.js';
import { document, type Ended, makeProject, repave as runRepave, type Running, startRepave } from './repave.js';

interface PulledDocument {
  readonly version: number;
  readonly id: string;
  readonly lever: string;
  readonly sent: 'update' | 'signal';
  readonly steered?: Steered;
}

const TABLES = `CREATE TABLE daily (day date NOT NULL, n bigint NOT NULL); ${BAD_AND_BRAKE}`;
const DAILY = dailyPipeline('daily', 'day', 'n', '2024-01-01');

describe('the commands that steer a backfill', function () {
  this.timeout(600_000);
  /** Of this test alone, since ids of workflows hold it. */
  const pipeline = `daily_${randomBytes(4).toString('hex')}`;
  const january = `backfill/${pipeline}/2024-01-01..2024-01-10`;
  let project: string;
  let database: TestDatabase;
  let env: Record<string, string>;
  let client: RepaveClient;
  let worker: Running | undefined;
  const repave = (...words: string[]): Promise<Ended> => runRepave(project, words, env);

  before(async () => {
    project = makeProject({ [`pipelines/${pipeline}.sql`]: DAILY });
    database = await createTestDatabase();
    await database.sql(TABLES);
    const { address } = await testTemporal();
    const taskQueue = `steer-${pipeline}`;
    env = {
      DATABASE_URL: database.url,
      TEMPORAL_ADDRESS: address,
      REPAVE_TASK_QUEUE: taskQueue,
      REPAVE_SHUTDOWN_GRACE: '0',
    };
    client = await connectRepave({ settings: loadSettings(onlyThisServer(address)), taskQueue });
  });
  after(async () => {
    await killWorker();
    await client.close();
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  async function startWorker(): Promise<void> {
    worker = startRepave(project, ['worker'], env);
    await worker.says(/Worker is ready/);
  }

  async function killWorker(): Promise<void> {
    worker?.process.kill('SIGKILL');
    await worker?.ended;
  }

  const hold = (...days: string[]): Promise<unknown> =>
    database.sql('INSERT INTO brake SELECT unnest($1::date[])', [days]);
  const letGo = (): Promise<unknown> => database.sql('DELETE FROM brake');
  const spoil = (...days: string[]): Promise<unknown> =>
    database.sql('INSERT INTO bad SELECT unnest($1::date[])', [days]);
  const mend = (): Promise<unknown> => database.sql('DELETE FROM bad');
  const fills = async (): Promise<unknown> => (await database.sql('SELECT count(*)::int FROM repave.fill'))[0]?.count;
  /** As a worker says it. */
  const progress = (id: string): Promise<Progress | undefined> =>
    client
      .handle(id)
      .progress()
      .catch(() => undefined);

  /** Runs a command that must be done, and returns all it has said. */
  async function done(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await repave(...words);
    assert.equal(code, 0, `${words.join(' ')}:\n${stdout}${stderr}`);
    return stdout + stderr;
  }

  /** Pulls a lever that a worker is to answer within the command's 5 s: a slow machine may not the first time. */
  const answered = (...words: string[]): Promise<string> =>
    until(`an answer to ${words.join(' ')}`, async () => {
      const said = await done(...words);
      return !said.includes('No worker has answered') && said;
    });
  const steeredBy = async (...words: string[]): Promise<Steered> =>
    until(`an answer to ${words.join(' ')}`, async () => document<PulledDocument>(await repave(...words)).steered);

  /** Runs a command that must be refused, and returns what it says. */
  async function refused(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await repave(...words);
    assert.equal(code, 2, `${words.join(' ')}:\n${stdout}${stderr}`);
    assert.equal(stdout, '');
    return stderr;
  }

  it('keep levers while no worker runs, and say so', async () => {
    await done('backfill', pipeline, '2024-01-01..2024-01-10', '--detach');
    // What no worker has begun is known by its pipeline from Temporal's list alone, which lags a little behind.
    await until('it to be listed', async () => {
      const listed: string[] = [];
      const query = `WorkflowId = '${january}'`;
      for await (const { workflowId } of client.temporal.workflow.list({ query })) listed.push(workflowId);
      return listed.length > 0;
    });
    const said = await done('pause', pipeline, '--reason', 'the replica lags');
    assert.match(
      said,
      new RegExp(`No worker has answered within 5 s\\. Temporal keeps it: ${january} is paused once one runs\\.`),
    );
    assert.match(said, /No worker polls the task queue/);
    const { id, lever, sent, steered } = document<PulledDocument>(await repave('concurrency', january, '2', '--json'));
    assert.deepEqual([id, lever, sent, steered], [january, 'setConcurrency', 'signal', undefined]);
  });

  it('are in force once one runs, and over a worker that is killed', async () => {
    await startWorker();
    const first = await until('a pause', async () => {
      const now = await progress(january);
      return now?.phase === 'paused' && now;
    });
    assert.deepEqual([first.paused?.by, first.paused?.reason, first.concurrency], ['lever', 'the replica lags', 2]);
    assert.match(
      await answered('pause', january, '--reason', 'night'),
      /^Paused backfill\S+ \(night\): nothing more is started/,
    );

    await killWorker();
    await startWorker();
    const second = await until('an answer', async () => await progress(january));
    assert.deepEqual([second.phase, second.paused?.reason, second.filled], ['paused', 'night', 0]);
    assert.deepEqual([second.running, await fills()], [[], 0]);
  });

  it('resume, and set how many are filled at once', async () => {
    await hold('2024-01-04', '2024-01-05', '2024-01-06', '2024-01-07', '2024-01-08', '2024-01-09', '2024-01-10');
    assert.match(await answered('concurrency', pipeline, '3'), /fills 3 at once now[^]*It is paused[^]*repave resume/);
    assert.match(await answered('resume', pipeline), /goes on, 3 at once\./);
    await until('3 that run', async () => (await progress(january))?.running.length === 3);
    assert.deepEqual(await steeredBy('concurrency', january, '5', '--json'), { concurrency: 5, stopping: false });
    await until('5 that run', async () => (await progress(january))?.running.length === 5);
    assert.match(
      await answered('concurrency', january, '1'),
      /fills 1 at once now; what runs beyond that goes on to its end/,
    );
  });

  it('refuse what is wrong, of a backfill that runs', async () => {
    assert.match(await refused('concurrency', january, '0'), /'0' is invalid for argument 'n'\. Expected 1 to 100\./);
    assert.match(await refused('concurrency', january, 'many'), /Expected a whole number/);
    assert.match(await refused('pause', january, '--reason', 'x'.repeat(201)), /201 characters/);
    await hold('2024-02-01');
    const other = document<{ id: string }>(await repave('backfill', pipeline, '2024-02-01', '--detach', '--json'));
    await until('the other to be begun', async () => (await progress(other.id))?.running.length === 1);
    for (const command of ['pause', 'retry', 'watch']) {
      const several = await refused(command, pipeline);
      assert.match(several, /Several backfills of \S+ run: name one/);
      for (const id of [january, other.id]) assert.ok(several.includes(`  repave ${command} ${id}\n`), several);
    }
    assert.match(await refused('cancel', pipeline), /expected the id of a backfill/);
    await done('cancel', other.id);
  });

  it('stop once what runs is finished, and say of one that has ended that it has', async () => {
    assert.deepEqual(await steeredBy('stop', pipeline, '--json'), { concurrency: 1, stopping: true });
    assert.match(await answered('pause', january), /is not paused: it is stopping/);
    assert.match(await answered('resume', january), /does not go on: it is stopping/);
    await letGo();
    const ended = await repave('watch', january);
    assert.equal(ended.code, 1, ended.stderr);
    assert.equal(await fills(), 8);
    assert.match(await refused('resume', january), /has ended as completed, and can be steered no more/);
    assert.match(await refused('concurrency', january, '4'), /has ended as completed/);
    assert.match(await refused('pause', pipeline), /No backfill of \S+ runs/);
    assert.match(await refused('pause', 'nobody'), /There is no pipeline and no backfill "nobody" in the ledger/);
    assert.match(await done('retry', january), /Nothing of \S+ has failed/);
  });

  it('retry in the run while it lives', async () => {
    await spoil('2024-03-01', '2024-03-02');
    await hold('2024-03-03');
    const march = `backfill/${pipeline}/2024-03-01..2024-03-03`;
    await done('backfill', pipeline, '2024-03-01..2024-03-03', '--detach');
    await until('two failures', async () => (await progress(march))?.failed === 2);
    await mend();
    // Whether a worker has answered within 5 s, or Temporal keeps it.
    assert.match(await done('retry', pipeline), /hat has failed in \S+( so far)? is filled again/);
    await until('what was tried again', async () => (await progress(march))?.filled === 2);
    assert.match(await done('retry', march), /Nothing of \S+ has failed so far/);
    await letGo();
    assert.equal((await client.handle(march).result()).filled, 3);
  });

  it('retry by a new backfill where it has ended', async () => {
    await spoil('2024-04-02', '2024-04-05');
    const april = `backfill/${pipeline}/2024-04-01..2024-04-06`;
    const failed = await repave('backfill', pipeline, '2024-04-01..2024-04-06', '--concurrency', '2');
    assert.equal(failed.code, 1, failed.stderr);
    await mend();
    const said = await done('retry', april);
    assert.match(said, /has ended \(BackfillIncomplete\): what failed in it is filled by a new backfill/);
    assert.ok(said.includes(`Started ${april}+failed\n`), said);
    assert.match(said, /2 of 2 partitions filled/);
    assert.deepEqual(await client.handle(`${april}+failed`).input(), {
      pipeline,
      from: '2024-04-01',
      to: '2024-04-06',
      concurrency: 2,
      only: ['failed'],
    });
    const again = document<{ id: string; result: BackfillResult }>(await repave('retry', april, '--json'));
    assert.deepEqual([again.id, again.result.total], [`${april}+failed`, 0]);
    assert.match(await done('retry', `${april}+failed`), /Nothing of \S+ has failed \(it has ended: Completed\)/);
  });

  it('retry what the words of a backfill meant when it ran, also of one that was cancelled', async () => {
    await spoil('2024-05-02');
    await hold('2024-05-07');
    const keys = ['2024-05-02', '2024-05-05..2024-05-07'];
    const some = document<{ id: string }>(await repave('backfill', pipeline, ...keys, '--detach', '--json')).id;
    await until('a failure', async () => (await progress(some))?.failed === 1);
    await done('cancel', some);
    await letGo();
    await mend();
    const { id, result } = document<{ id: string; result: BackfillResult }>(await repave('retry', some, '--json'));
    assert.deepEqual([id, result.filled], [`${some}+failed`, 1]);

    // The newest finished days, whichever these are by now.
    const days = [4, 3, 2, 1, 0].map((ago) => new Date(Date.now() - ago * 86_400_000).toISOString().slice(0, 10));
    await spoil(...days);
    const newest = await repave('backfill', pipeline, '--last', '2', '--json');
    const end = document<{ id: string; result: BackfillResult }>(newest);
    assert.equal(newest.code, 1, newest.stderr);
    await mend();
    const later = document<{ id: string; notes: string[] }>(await repave('retry', end.id, '--detach', '--json'));
    assert.equal(later.id, `backfill/${pipeline}/${end.result.first}..${end.result.last}+failed`);
    assert.match(later.notes.join(), /filled by a new backfill/);
    assert.equal((await client.handle(later.id).result()).filled, 2);
  });
});
