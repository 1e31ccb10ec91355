import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  connectRepave,
  type RepaveClient,
  type ScheduleChange,
  type ScheduleRequest,
  type SeenSchedule,
} from '../../src/client.js';
import { healScheduleId, scheduleId } from '../../src/contract.js';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { loadSettings } from '../../src/settings.js';
import { until } from '../chaos/until.js';
import { CRONS } from '../pipeline/crons.js';
import { testTemporal } from '../support/temporal.js';
import { uniqueQueue } from '../support/workflow.js';
import { document, type Ended, makeProject, repave as runRepave } from './repave.js';

interface Deployed {
  readonly applied: boolean;
  readonly changes: readonly ScheduleChange[];
  readonly leftAlone: readonly { readonly pipeline: string; readonly why: string }[];
  readonly broken: readonly { readonly name: string }[];
  readonly refused: readonly { readonly pipeline: string; readonly message: string }[];
}

const MARK = randomBytes(4).toString('hex');
/** Of this test alone, since ids of schedules hold it. */
const named = (name: string): string => `${name}_${MARK}`;
const [SALES, RATES, STOCK] = [named('sales'), named('rates'), named('stock')];

const pipeline = (target: string, ...settings: readonly string[]): string =>
  [
    '-- repave',
    `-- target: ${target}`,
    '-- partition: { column: day, by: day, zone: Europe/Vienna }',
    ...settings.map((setting) => `-- ${setting}`),
    'SELECT :date AS day',
    '',
  ].join('\n');

describe('repave deploy and repave schedule', function () {
  this.timeout(600_000);
  let project: string;
  let env: Record<string, string>;
  let client: RepaveClient;
  const taskQueue = uniqueQueue();
  const repave = (...words: string[]): Promise<Ended> => runRepave(project, words, env);
  const deploy = async (...words: string[]): Promise<Deployed & { readonly code: number | null }> => {
    const ended = await repave('deploy', ...words, '--json');
    return { ...document<Deployed>(ended), code: ended.code };
  };
  const write = (name: string, text: string): void => writeFileSync(join(project, 'pipelines', `${name}.sql`), text);
  const described = (id: string) => client.temporal.schedule.getHandle(id).describe();
  /** Temporal's own list of what is there lags a little. */
  const listed = (...pipelines: readonly string[]): Promise<readonly SeenSchedule[]> =>
    until(`a list of ${pipelines.join(', ') || 'none'}`, async () => {
      const seen = await client.schedules.list();
      return seen.map((one) => one.pipeline).join() === [...pipelines].sort().join() && seen;
    });

  before(async () => {
    const { address } = await testTemporal();
    env = { TEMPORAL_ADDRESS: address, REPAVE_TASK_QUEUE: taskQueue };
    client = await connectRepave({ settings: loadSettings(onlyThisServer(address)), taskQueue });
    project = makeProject({
      [`pipelines/${SALES}.sql`]: pipeline(
        'sales',
        'schedule: { cron: 15 2 * * *, lookback: 2, heal: 30 }',
        'changed: SELECT 1',
      ),
      [`pipelines/${RATES}.sql`]: pipeline('rates', 'schedule: 0 * * * *'),
      [`pipelines/${STOCK}.sql`]: pipeline('stock'),
    });
  });
  after(async () => {
    for (const name of [SALES, RATES, STOCK]) await client.schedules.remove(name).catch(() => undefined);
    await client.close();
    rmSync(project, { recursive: true, force: true });
  });

  it('shows what differs, applies it, and then shows nothing', async () => {
    const shown = await repave('deploy');
    assert.equal(shown.code, 1, shown.stderr);
    assert.equal(
      shown.stdout,
      `+ ${RATES}  at 0 * * * * (Europe/Vienna), last 1\n+ ${SALES}  at 15 2 * * * (Europe/Vienna), last 1, lookback 2, heal 30\n`,
    );
    assert.match(shown.stderr, /2 pipelines to change\. Apply it with:\n {2}repave deploy --yes/);
    await assert.rejects(described(scheduleId(SALES)), { name: 'ScheduleNotFoundError' });

    const applied = await deploy('--yes');
    assert.deepEqual([applied.code, applied.applied, applied.changes.length], [0, true, 2]);
    const [again, nothing] = await Promise.all([deploy('--yes'), repave('deploy')]);
    assert.deepEqual([again.code, again.changes], [0, []]);
    assert.deepEqual([nothing.code, nothing.stdout], [0, '']);
    assert.match(nothing.stderr, /Nothing to do/);
  });

  it('shows in `check` what a file asks for', async () => {
    const { stdout } = await repave('check', SALES);
    assert.match(stdout, /\n {2}at 15 2 \* \* \* \(Europe\/Vienna\), last 1, lookback 2, heal 30\n/);
  });

  it('makes schedules that go on, whatever fails and however long it takes', async () => {
    const [day, heal] = await Promise.all([described(scheduleId(SALES)), described(healScheduleId(SALES))]);
    const { args: [filled] = [], ...run } = day.action;
    assert.deepEqual(filled, { pipeline: SALES, last: 1, lookback: 2, priority: 2 });
    assert.deepEqual(
      [run.workflowType, run.workflowId, run.taskQueue, run.priority?.priorityKey, day.spec.timezone],
      ['backfill', `backfill/${SALES}/scheduled`, taskQueue, 2, 'Europe/Vienna'],
    );
    assert.deepEqual(run.memo?.repaveInput, filled);
    const month = 30 * 86_400_000;
    assert.deepEqual(day.policies, { overlap: 'ALLOW_ALL', catchupWindow: month, pauseOnFailure: false });
    assert.deepEqual(heal.action.args, [
      {
        ...{ pipeline: SALES, last: 30, lookback: 0, only: ['missing', 'failed', 'outdated', 'changed'], tries: 3 },
        ...{ order: 'oldest-first', priority: 5 },
      },
    ]);
    assert.equal(heal.action.workflowId, `backfill/${SALES}/heal`);
    assert.deepEqual(heal.policies, { overlap: 'BUFFER_ONE', catchupWindow: 86_400_000, pauseOnFailure: false });
  });

  it('shows fields that are to be others, and keeps a paused one paused', async () => {
    assert.equal((await repave('schedule', 'pause', SALES, '--reason', 'the source is moved')).code, 0);
    write(SALES, pipeline('sales', 'schedule: { cron: 30 2 * * *, heal: 60 }'));
    write(RATES, pipeline('rates', 'schedule: { cron: 0 * * * *, heal: 5 }'));
    const shown = await repave('deploy');
    assert.equal(shown.code, 1);
    assert.equal(
      shown.stdout,
      [
        `~ ${RATES}`,
        '    heal  none → 5',
        `~ ${SALES}`,
        '    cron       15 2 * * * → 30 2 * * *',
        '    heal       30 → 60',
        '    heal only  ["missing","failed","outdated","changed"] → ["missing","failed","outdated"]',
        '    lookback   2 → none',
        '',
      ].join('\n'),
    );
    assert.equal((await repave('deploy', '--yes')).code, 0);
    assert.deepEqual((await deploy()).changes, []);
    const [sales] = (await listed(RATES, SALES)).filter((one) => one.pipeline === SALES);
    const { cron, heal, lookback, paused, next } = sales ?? {};
    assert.deepEqual([cron, heal, lookback, paused, next], ['30 2 * * *', 60, undefined, 'the source is moved', []]);
    assert.equal((await described(healScheduleId(SALES))).state.paused, true);
    assert.equal((await repave('schedule', 'resume', SALES)).code, 0);
    assert.equal((await described(healScheduleId(SALES))).state.paused, false);
    assert.equal((await described(scheduleId(SALES))).state.paused, false);
  });

  it('brings back what somebody has changed by other means', async () => {
    const handle = client.temporal.schedule.getHandle(scheduleId(RATES));
    await handle.update((before) => ({
      ...before,
      spec: { intervals: [{ every: '1h' }] },
      policies: { ...before.policies, overlap: 'SKIP' },
    }));
    await client.temporal.schedule.getHandle(healScheduleId(RATES)).update((before) => ({
      ...before,
      action: { ...before.action, workflowType: 'partition' },
      state: { ...before.state, remainingActions: 1 },
    }));
    const { changes } = await deploy('--yes');
    assert.deepEqual(
      changes.map((change) => change.kind === 'changed' && change.fields),
      [
        [
          { field: 'cron', from: 'other times', to: '0 * * * *' },
          { field: 'zone', from: 'UTC', to: 'Europe/Vienna' },
          { field: 'overlap', from: 'SKIP', to: 'ALLOW_ALL' },
          {
            field: 'heal starts',
            from: `partition of ${RATES} as backfill/${RATES}/heal, priority 5`,
            to: `backfill of ${RATES} as backfill/${RATES}/heal, priority 5`,
          },
          { field: 'heal cron', from: '0 * * * *' },
          { field: 'heal zone', from: 'Europe/Vienna' },
          { field: 'heal runs left', from: '1' },
        ],
      ],
    );
    assert.deepEqual((await deploy()).changes, []);
  });

  it('leaves alone what `schedule add` and others have made, and what a broken file says nothing of', async () => {
    const add = ['schedule', 'add', STOCK, '--cron', '5 4 * * mon-fri'];
    assert.equal((await repave(...add)).code, 0);
    const [same, other, inFile] = await Promise.all([
      repave(...add),
      repave(...add, '--last', '3', '--heal', '9'),
      repave('schedule', 'add', SALES, '--cron', '1 1 * * *'),
    ]);
    assert.deepEqual([same.code, same.stdout], [0, `${STOCK} is filled at 5 4 * * mon-fri (Europe/Vienna) already\n`]);
    assert.equal(other.code, 2);
    assert.match(other.stderr, /has a schedule already, with last 1, not 3; heal none, not 9\. Remove it first/);
    assert.match(inFile.stderr, /The file of .* has a schedule: change it there/);

    await listed(RATES, SALES, STOCK);
    const sales = readFileSync(join(project, 'pipelines', `${SALES}.sql`), 'utf8');
    write(SALES, sales.replace('30 2 * * *', '61 2 * * *'));
    const broken = await deploy('--yes');
    assert.deepEqual([broken.code, broken.changes, broken.broken.map(({ name }) => name)], [1, [], [SALES]]);
    assert.deepEqual(broken.leftAlone, [
      { pipeline: SALES, why: 'its file cannot be read' },
      { pipeline: STOCK, why: 'it was made by `repave schedule add`' },
    ]);
    write(SALES, sales);

    // Workers of another task queue have a pipeline of the same name.
    const elsewhere = { ...env, REPAVE_TASK_QUEUE: `${taskQueue}-2` };
    const [foreignEnded, refused] = await Promise.all([
      runRepave(project, ['deploy', '--yes', '--json'], elsewhere),
      runRepave(project, ['schedule', 'remove', STOCK], elsewhere),
    ]);
    const foreign = document<Deployed>(foreignEnded);
    assert.deepEqual(foreign.changes, []);
    assert.match(foreign.leftAlone[0]?.why ?? '', new RegExp(`on the task queue ${taskQueue}, this is ${taskQueue}-2`));
    assert.deepEqual([refused.code, refused.stderr.includes('left alone')], [2, true], refused.stderr);
  });

  it('takes over what `schedule add` has made once a file asks for it', async () => {
    write(STOCK, pipeline('stock', 'schedule: 5 4 * * mon-fri'));
    const { changes } = await deploy('--yes');
    assert.deepEqual(
      changes.map((change) => change.kind === 'changed' && change.fields),
      [[{ field: 'kept by', from: 'schedule add', to: 'deploy' }]],
    );
  });

  it('lists them, with their next times in their zone and how their last runs stand', async () => {
    await client.temporal.schedule.getHandle(scheduleId(RATES)).trigger();
    const rates = await until('the run that was triggered', async () => {
      const seen = await client.schedules.list();
      return seen.find((one) => one.pipeline === RATES && one.lastRun !== undefined);
    });
    assert.equal(rates.lastRun?.ended, 'running');
    assert.equal(rates.next.length, 3);
    const { stdout } = await repave('schedule', 'list');
    const [headings = '', ...rows] = stdout.trimEnd().split('\n');
    assert.equal(headings, 'pipeline\tcron\tzone\tlast\tlookback\theal\tnext\tlast run\tlast heal\tkept by');
    assert.equal(rows.length, 3);
    const row = rows.find((text) => text.startsWith(SALES))?.split('\t') ?? [];
    assert.deepEqual(row.slice(1, 6), ['30 2 * * *', 'Europe/Vienna', '1', '0', '60']);
    assert.match(row[6] ?? '', /^(\d{4}-\d{2}-\d{2} 02:30, ){2}\d{4}-\d{2}-\d{2} 02:30$/);
    await client.temporal.workflow.getHandle(rates.lastRun?.id ?? '').terminate('the test ends it');
  });

  it('refuses to remove anything from a folder without a pipeline, which is likely the wrong one', async () => {
    const empty = makeProject({ 'pipelines/.keep': '' });
    try {
      const { code, stdout, stderr } = await runRepave(empty, ['deploy', '--yes'], env);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, /holds no pipeline.*nothing was changed.*`repave schedule remove PIPELINE`/);
      await described(scheduleId(RATES));
    } finally {
      rmSync(empty, { recursive: true });
    }
  });

  it('removes what no file asks for any more', async () => {
    write(RATES, pipeline('rates'));
    rmSync(join(project, 'pipelines', `${STOCK}.sql`));
    const shown = await repave('deploy');
    assert.equal(
      shown.stdout,
      `- ${RATES}  at 0 * * * * (Europe/Vienna), last 1, heal 5\n- ${STOCK}  at 5 4 * * mon-fri (Europe/Vienna), last 1\n`,
    );
    assert.match(shown.stderr, /It removes the schedules of 2 pipelines, which .*REPAVE_TASK_QUEUE/);
    assert.equal((await repave('deploy', '--yes')).code, 0);
    await assert.rejects(described(scheduleId(RATES)), { name: 'ScheduleNotFoundError' });
    await assert.rejects(described(healScheduleId(RATES)), { name: 'ScheduleNotFoundError' });
    assert.deepEqual((await deploy()).changes, []);

    assert.equal((await repave('schedule', 'remove', SALES)).code, 0);
    assert.deepEqual(await listed(), []);
    const gone = await repave('schedule', 'pause', SALES);
    assert.deepEqual([gone.code, gone.stderr.includes('has no schedule')], [2, true]);
  });

  const request = (name: string): ScheduleRequest => ({
    ...{
      pipeline: named(name),
      cron: '15 2 * * *',
      zone: 'UTC',
      last: 1,
      heal: 7,
      healsChanged: false,
      keeper: 'deploy',
    },
  });
  const other = async (): Promise<RepaveClient> => {
    const { address } = await testTemporal();
    return connectRepave({ settings: loadSettings(onlyThisServer(address)), taskQueue: `${taskQueue}-2` });
  };

  it('asks again whose a schedule is before it touches it', async () => {
    const wanted = request('race');
    const change = { kind: 'added', pipeline: wanted.pipeline, request: wanted } as const;
    const theirs = await other();
    try {
      // Between the look and the change, workers of another task queue have made it.
      await theirs.schedules.add(wanted);
      const kinds: readonly ScheduleChange[] = [
        change,
        { ...change, kind: 'changed', fields: [] },
        { kind: 'removed', pipeline: wanted.pipeline, was: wanted },
      ];
      for (const one of kinds) {
        await assert.rejects(client.schedules.apply(one), {
          type: 'InvalidInput',
          message: /on the task queue .*-2, this is/,
        });
      }
      assert.equal((await described(scheduleId(wanted.pipeline))).action.taskQueue, `${taskQueue}-2`);
    } finally {
      await theirs.schedules.remove(wanted.pipeline);
      await theirs.close();
    }
    await client.schedules.add({ ...wanted, keeper: 'schedule add' });
    await assert.rejects(client.schedules.apply(change), { message: /made by somebody else just now/ });
    await assert.rejects(client.schedules.apply({ kind: 'removed', pipeline: wanted.pipeline, was: wanted }), {
      message: /made by somebody else just now/,
    });
    await client.schedules.remove(wanted.pipeline);
    await client.schedules.apply(change);
    await client.schedules.apply(change);
    await client.schedules.remove(wanted.pipeline);
  });

  it('shows a heal of which the other schedule is gone, and makes it whole', async () => {
    const { pipeline: name } = request('half');
    await client.schedules.add(request('half'));
    await client.temporal.schedule.getHandle(scheduleId(name)).delete();
    const seen = await until('the heal alone', async () => {
      const found = (await client.schedules.list()).find((one) => one.pipeline === name);
      return found && found.last === undefined && found;
    });
    assert.deepEqual(
      [seen.cron, seen.zone, seen.heal, seen.last, seen.next.length],
      ['15 2 * * *', 'UTC', 7, undefined, 3],
    );
    const { changes } = await client.schedules.compare([], []);
    const was = changes.find((change) => change.pipeline === name);
    assert.deepEqual(was?.kind === 'removed' && was.was, { cron: '15 2 * * *', zone: 'UTC', heal: 7 });
    assert.equal(await client.schedules.add(request('half')), true);
    assert.deepEqual(
      (await client.schedules.compare([request('half')], [])).changes.filter((one) => one.pipeline === name),
      [],
    );
    await client.schedules.remove(name);
  });

  it('acts on no heal as on a pipeline', () =>
    assert.rejects(client.schedules.pause(`${SALES}+heal`, ''), {
      type: 'InvalidInput',
      message: /no name holds a \+/,
    }));

  it('applies each change, whatever Temporal makes of the others', async () => {
    // This process has data of a zone that was given up long since, and Temporal's server has none.
    const zone = 'Canada/East-Saskatchewan';
    const names = [named('bad'), named('good')];
    write(named('bad'), pipeline('sales', `schedule: { cron: 15 2 * * *, zone: ${zone} }`));
    write(named('good'), pipeline('sales', 'schedule: 15 2 * * *'));
    const { code, changes, refused } = await deploy('--yes');
    assert.equal(code, 1);
    assert.deepEqual(
      changes.map((change) => change.pipeline).filter((name) => names.includes(name)),
      names,
    );
    assert.deepEqual(
      refused.map((change) => change.pipeline),
      [named('bad')],
    );
    assert.match(
      refused[0]?.message ?? '',
      /Temporal does not take the schedule .*unknown time zone Canada\/East-Saskatchewan/,
    );
    assert.equal((await described(scheduleId(named('good')))).spec.timezone, 'Europe/Vienna');
    for (const name of names) rmSync(join(project, 'pipelines', `${name}.sql`));
    await client.schedules.remove(named('good'));
    // The same of a schedule that is there.
    const standing = request('standing');
    await client.schedules.add(standing);
    const changed = {
      kind: 'changed',
      pipeline: standing.pipeline,
      request: { ...standing, zone },
      fields: [],
    } as const;
    await assert.rejects(client.schedules.apply(changed), { type: 'InvalidInput', message: /unknown time zone/ });
    await client.schedules.remove(standing.pipeline);
    // What has lost its memo, as by `temporal schedule update`, is told how to be had again.
    const { spec, action } = await client.schedules.add(standing).then(() => described(scheduleId(standing.pipeline)));
    await client.temporal.schedule
      .getHandle(scheduleId(standing.pipeline))
      .update((before) => ({ ...before, action: { ...action, memo: {} }, spec }));
    const { leftAlone } = await client.schedules.compare([standing], []);
    assert.match(
      leftAlone.find((one) => one.pipeline === standing.pipeline)?.why ?? '',
      /was not made by Repave, or has lost.*temporal schedule delete --schedule-id/,
    );
    for (const id of [scheduleId(standing.pipeline), healScheduleId(standing.pipeline)])
      await client.temporal.schedule.getHandle(id).delete();
  });

  it('judges a cron as Temporal does', async () => {
    const request = {
      pipeline: named('crons'),
      zone: 'UTC',
      last: 1,
      healsChanged: false,
      keeper: 'schedule add',
    } as const;
    const taken = async (cron: string): Promise<boolean> => {
      try {
        await client.schedules.add({ ...request, cron });
      } catch (error) {
        assert.match(String(error), /^InvalidInput: Temporal does not take|^Failure: Temporal does not take/);
        return false;
      }
      await client.schedules.remove(request.pipeline);
      return true;
    };
    for (const cron of CRONS.taken) assert.equal(await taken(cron), true, cron);
    for (const [cron] of CRONS.refused) if (cron !== '') assert.equal(await taken(cron), false, cron);
    await assert.rejects(client.schedules.add({ ...request, cron: '0 0 * * *', zone: 'Mars/Olympus' }), {
      message: /Temporal does not take the schedule .*unknown time zone Mars\/Olympus/,
    });
  });
});
