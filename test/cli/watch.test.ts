import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { until } from '../chaos/until.js';
import { type Bed, makeBed } from '../support/bed.js';
import { testTemporal } from '../support/temporal.js';
import { document, type Ended, makeProject, repave, startRepave } from './repave.js';

interface Watched {
  readonly id: string;
  readonly progress: { readonly phase: string; readonly filled: number; readonly running: { readonly keys: string }[] };
  readonly unanswered?: string;
  readonly result?: { readonly filled: number; readonly total: number };
}

interface Status {
  readonly backfills: readonly {
    readonly state: string;
    readonly filled: number;
    readonly startedBy: string | null;
    readonly unanswered?: string;
    readonly progress: { readonly phase: string; readonly running: readonly { readonly keys: string }[] };
  }[];
}

describe('watch and status of a backfill whose worker dies half-way', function () {
  this.timeout(600_000);
  let bed: Bed;
  let project: string;
  let env: Record<string, string>;

  before(async () => {
    bed = await makeBed();
    project = makeProject({});
    env = {
      DATABASE_URL: bed.database.url,
      TEMPORAL_ADDRESS: (await testTemporal()).address,
      REPAVE_TASK_QUEUE: bed.taskQueue,
    };
  });
  after(async () => {
    await bed.close();
    rmSync(project, { recursive: true, force: true });
  });

  /** Temporal has 2 s for its word: on a slow machine not the first time. */
  const statusSays = (words: readonly string[], pattern: RegExp, environment = env): Promise<Ended> =>
    until(`status to say ${String(pattern)}`, async () => {
      const ended = await repave(project, ['status', ...words], environment);
      return pattern.test(ended.stdout) && ended;
    });

  it('go on by the ledger, say that no worker answers, and hear of the end', async () => {
    await bed.hold('2024-01-03');
    const worker = await bed.worker();
    const handle = await bed.client.backfill({
      pipeline: bed.pipeline,
      from: '2024-01-01',
      to: '2024-01-04',
      concurrency: 1,
    });
    const watching = startRepave(project, ['watch', handle.id, '--json'], env);
    const plain = startRepave(project, ['watch', handle.id], env);
    // The third is held: two are filled, by a worker's word.
    await watching.says(/"filled":2.*"keys":"2024-01-03"/);
    await worker.kill();
    // On a slow machine it may have been said before, of a worker that was only slow.
    const text = await watching.says(/^\{.*"filled":2,.*"keys":"2024-01-03".*"unanswered":"no worker.*\n/m);
    const seen = text
      .slice(0, text.lastIndexOf('\n'))
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Watched);
    const dark = seen.findLast(({ unanswered }) => unanswered !== undefined);
    assert.deepEqual([dark?.progress.filled, dark?.progress.phase], [2, 'filling']);
    assert.deepEqual(
      dark?.progress.running.map(({ keys }) => keys),
      ['2024-01-03'],
    );

    const one = await until('Temporal to say what runs', async () => {
      const [seen] = document<Status>(await repave(project, ['status', handle.id, '--json'], env)).backfills;
      return (seen?.progress.running.length ?? 0) > 0 && seen;
    });
    assert.deepEqual([one.state, one.filled, one.unanswered], ['running', 2, 'no worker answers']);
    assert.deepEqual(
      one.progress.running.map(({ keys }) => keys),
      ['2024-01-03'],
    );
    assert.match(one.startedBy ?? '', /@/);
    await statusSays([], /▓ running\t2 of 4 50 %\t0\t/);

    // At most one line each ten seconds.
    await plain.says(/no worker (answers|polls)/);
    await bed.letGo('2024-01-03');
    await bed.worker();
    const ended = await watching.ended;
    assert.equal(ended.code, 0, ended.stderr);
    const last = JSON.parse(ended.stdout.trimEnd().split('\n').at(-1) ?? '') as Watched;
    assert.deepEqual([last.result?.filled, last.result?.total], [4, 4]);
    const lines = await plain.ended;
    assert.equal(lines.code, 0, lines.stderr);
    assert.match(lines.stdout, /^✓ .*4 of 4 partitions filled/);
    assert.match(lines.stderr, /no worker (answers|polls).*ledger/);
  });

  it('watch ends with 1 where it was stopped with partitions left, and names the command for the rest', async () => {
    await bed.hold('2024-04-01');
    const handle = await bed.client.backfill({
      pipeline: bed.pipeline,
      from: '2024-04-01',
      to: '2024-04-03',
      concurrency: 1,
    });
    const watching = startRepave(project, ['watch', handle.id], env);
    await watching.says(/: (planning|0 of 3)/);
    await until('the first fill', async () => {
      const progress = await handle.progress().catch(() => undefined);
      return progress?.running.length === 1;
    });
    await handle.stop();
    await bed.letGo('2024-04-01');
    const { code, stdout, stderr } = await watching.ended;
    assert.equal(code, 1, stderr);
    assert.match(stdout, /^■ .*: 1 of 3 partitions filled, 1 row, stopped with 2 left\n$/);
    assert.match(
      stderr,
      /Fill the rest:\n {2}repave backfill \S+ 2024-04-01\.\.2024-04-03 --only missing,failed,outdated\n$/,
    );
  });

  it('status says of one that was terminated, or that Temporal has lost, that the ledger has it open', async () => {
    await bed.hold('2024-02-01');
    const handle = await bed.client.backfill({ pipeline: bed.pipeline, from: '2024-02-01', to: '2024-02-02' });
    const state = (): Promise<string> =>
      until('Temporal to say how it stands', async () => {
        const status = await repave(project, ['status', handle.id, '--json'], env);
        const [seen] = document<Status>(status).backfills;
        return seen?.state !== 'unknown' && seen?.state;
      });
    await until('it to run', async () => (await state()) === 'running');
    await bed.client.temporal.workflow.getHandle(handle.id).terminate();
    assert.equal(await state(), 'terminated');
    await statusSays([handle.id], /! terminated\n[^]*! Temporal has ended it; the ledger did not hear of it\./);
    await bed.database.sql('UPDATE repave.backfill SET id = $2, run = $3 WHERE id = $1', [
      handle.id,
      `${handle.id}-lost`,
      '00000000-0000-4000-8000-000000000000',
    ]);
    await statusSays([`${handle.id}-lost`], /! lost\n[^]*Temporal knows it no more/);
  });

  it('status says of one that no worker has begun that it waits for one', async () => {
    const id = `${bed.pipeline}/unbegun`;
    const nobody = { ...env, REPAVE_TASK_QUEUE: `${bed.taskQueue}-nobody` };
    const started = await repave(project, ['backfill', bed.pipeline, '2024-03-01', '--id', id, '--detach'], nobody);
    assert.equal(started.code, 0, started.stderr);
    const { stderr } = await statusSays([id], /waiting\n {2}it waits for a worker to begin it\n/, nobody);
    assert.match(stderr, /No worker polls/);
  });
});
