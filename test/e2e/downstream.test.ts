import assert from 'node:assert/strict';
import { BackfillFailed } from '../../src/client.js';
import type { BackfillResult } from '../../src/contract.js';
import { until } from '../chaos/until.js';
import { document, type Ended, repave } from '../cli/repave.js';
import { testTemporal } from '../support/temporal.js';
import type { WorkerProcess } from '../support/worker.js';
import { Diamond, FIRST, LAST, type Part, PARTITIONS } from './diamond.js';
import { progressOf } from './progress-of.js';

/** Two that come after each other, and one behind them. */
const circle = (name: (part: string) => string): Record<string, string> =>
  Object.fromEntries(
    [
      ['circle_a', 'circle_b'],
      ['circle_b', 'circle_a'],
      ['behind', 'circle_a'],
    ].map(([part = '', after = '']) => [
      `${name(part)}.sql`,
      `-- repave\n-- target: alone\n-- partition: { column: day, by: day }\n-- scope: { units: ${part.length} }\n-- after: [${name(after)}]\nSELECT :date AS day, ${part.length} AS units`,
    ]),
  );

describe('pipelines that come after others', function () {
  this.timeout(300_000);
  let diamond: Diamond;
  let worker: WorkerProcess;

  before(async () => {
    diamond = await Diamond.open(circle);
    worker = await diamond.installation.startWorker();
  });
  after(async () => {
    await diamond.installation.close();
  });

  const cli = async (...words: string[]): Promise<Ended> => {
    const { installation } = diamond;
    return repave(installation.project, words, {
      DATABASE_URL: installation.database.url,
      TEMPORAL_ADDRESS: (await testTemporal()).address,
      REPAVE_TASK_QUEUE: installation.taskQueue,
    });
  };
  const only = async (part: Part, ...states: string[]): Promise<number> => {
    const dry = await diamond.backfill(part, { only: states, dryRun: true });
    return (await dry.result()).total;
  };
  const outdated = async (): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const part of ['days', 'by_day', 'by_month', 'report'] as const) counts[part] = await only(part, 'outdated');
    return counts;
  };
  /** What of each pipeline a backfill has filled downstream. */
  const filledOf = ({ downstream = [] }: BackfillResult): string[] =>
    downstream.map(({ pipeline, filled, total, first, last, id }) => {
      const begun = id === undefined ? ' not begun' : '';
      return `${pipeline.replace(/_[^_]*$/, '')} ${first}..${last} ${filled}/${total}${begun}`;
    });

  it('refuses a circle: `check` with the line of `after`, the worker while it serves the others', async () => {
    const [a, b, behind] = ['circle_a', 'circle_b', 'behind'].map((part) => diamond.name(part)) as [
      string,
      string,
      string,
    ];
    const checked = await cli('check', '--json');
    assert.equal(checked.code, 1, checked.stderr);
    const { pipelines } = document<{
      pipelines: { name: string; problems: { line: number; type: string; message: string }[] }[];
    }>(checked);
    const circles = pipelines.flatMap(({ name, problems }) =>
      problems.filter(({ message }) => message.includes('circle,')).map(({ line, type }) => ({ name, line, type })),
    );
    assert.deepEqual(
      circles,
      [a, b].map((name) => ({ name, line: 5, type: 'InvalidPipeline' })),
    );
    const failure = await diamond.installation.client
      .backfill({ pipeline: a, keys: ['2024-01-01'] })
      .then((run) => run.result())
      .catch((error: unknown) => error);
    assert.ok(failure instanceof BackfillFailed && failure.type === 'InvalidPipeline', String(failure));
    assert.match(failure.message, new RegExp(`${a} comes after ${b} comes after ${a}\\.`));
    const ready =
      worker
        .log()
        .split('\n')
        .find((line) => line.includes('Worker is ready')) ?? '';
    assert.ok(ready.includes(behind) && ready.includes(diamond.name('report')) && !ready.includes(a), ready);
  });

  it('a partition that is not ready goes behind the others, and is filled once what it comes after is', async () => {
    const { database } = diamond.installation;
    await (await diamond.backfill('days', { keys: ['2024-01-30', '2024-02-01'] })).result();
    const backfill = await diamond.backfill('by_day', { from: '2024-01-30', to: '2024-02-01', concurrency: 1 });
    const { notReady } = await until('the second to go behind', async () => {
      const progress = await progressOf(backfill);
      return progress?.waiting === 1 && progress;
    });
    assert.equal(notReady?.key, '2024-01-31');
    const why = `comes after ${diamond.name('days')} 2024-01-31 (missing)`;
    assert.ok(notReady?.reason?.includes(why), notReady?.reason);
    const filled = async () =>
      (
        await database.sql<{ key: string }>('SELECT key FROM repave.fill WHERE pipeline = $1 ORDER BY id', [
          diamond.name('by_day'),
        ])
      ).map(({ key }) => key);
    await until('the others to be filled', async () => (await filled()).length === 2);
    assert.deepEqual(await filled(), ['2024-01-30', '2024-02-01']);
    const planned = await cli('plan', diamond.name('by_day'), '2024-01-30..2024-02-01');
    assert.ok(
      planned.stderr.includes(
        `1 partition is not ready: what comes first is not filled, such as ${diamond.name('days')} 2024-01-31 (missing).`,
      ),
      planned.stderr,
    );
    await (await diamond.backfill('days', { keys: ['2024-01-31'] })).result();
    assert.equal((await backfill.result()).filled, 3);
    assert.deepEqual(await filled(), ['2024-01-30', '2024-02-01', '2024-01-31']);
  });

  it('the plan shows the whole, and the backfill fills it in order, across granularities', async () => {
    const [days, byDay, byMonth, report] = ['days', 'by_day', 'by_month', 'report'].map((part) => diamond.name(part));
    const planned = await cli('plan', days ?? '', `${FIRST}..${LAST}`, '--downstream');
    assert.equal(planned.code, 0, planned.stderr);
    for (const line of [
      `then ${byDay} ${FIRST}..${LAST}: 31 partitions to fill`,
      `then ${byMonth} 2024-01..2024-02: 2 partitions to fill`,
      `then ${report} 2024-01..2024-02: 2 partitions to fill`,
      `repave backfill ${days} ${FIRST}..${LAST} --downstream`,
    ])
      assert.ok(planned.stderr.includes(line), `${line}\n${planned.stderr}`);
    const behind = [
      { pipeline: byDay, total: 31, first: FIRST, last: LAST },
      { pipeline: byMonth, total: 2, first: '2024-01', last: '2024-02' },
      { pipeline: report, total: 2, first: '2024-01', last: '2024-02' },
    ];
    const asJson = await cli('plan', days ?? '', `${FIRST}..${LAST}`, '--downstream', '--json');
    assert.deepEqual(
      document(asJson).downstream,
      behind.map((one) => ({ ...one, notes: [] })),
    );
    const dry = await diamond.backfill('days', { from: FIRST, to: LAST, downstream: true, dryRun: true });
    assert.deepEqual(
      (await dry.result()).downstream,
      behind.map((one) => ({ ...one, filled: 0, failed: 0, skipped: 0 })),
    );
    const ended = await cli('backfill', days ?? '', `${FIRST}..${LAST}`, '--downstream');
    assert.equal(ended.code, 0, ended.stderr);
    assert.deepEqual(ended.stdout.trimEnd().split('\n').slice(-3), [
      `✓ ${byDay} ${FIRST}..${LAST}: 31 of 31 partitions filled`,
      `✓ ${byMonth} 2024-01..2024-02: 2 of 2 partitions filled`,
      `✓ ${report} 2024-01..2024-02: 2 of 2 partitions filled`,
    ]);
    await diamond.isRight();
    assert.deepEqual(await outdated(), { days: 0, by_day: 0, by_month: 0, report: 0 });
  });

  it('a day that is filled again makes what was made of it outdated, in plan and status, until that is filled too', async () => {
    await (await diamond.backfill('days', { keys: ['2024-02-03'] })).result();
    assert.deepEqual(await outdated(), { days: 0, by_day: 1, by_month: 1, report: 0 });
    const { pipelines } = document<{
      pipelines: { name: string; filled: number; outdated: number; after: string[] }[];
    }>(await cli('status', '--json'));
    const [view] = pipelines.filter(({ name }) => name === diamond.name('by_day'));
    assert.deepEqual([view?.filled, view?.outdated, view?.after], [PARTITIONS.by_day - 1, 1, [diamond.name('days')]]);

    const backfill = await diamond.backfill('days', { keys: ['2024-02-03'], downstream: true });
    assert.deepEqual(filledOf(await backfill.result()), [
      'by_day 2024-02-03..2024-02-03 1/1',
      'by_month 2024-02..2024-02 1/1',
      'report 2024-02..2024-02 1/1',
    ]);
    assert.deepEqual(await outdated(), { days: 0, by_day: 0, by_month: 0, report: 0 });
  });

  it('leaves out, and says so, what could not be filled, since another that it comes after is not', async () => {
    await diamond.installation.database.sql(`DELETE FROM repave.partition WHERE pipeline = $1 AND key = '2024-02-05'`, [
      diamond.name('by_day'),
    ]);
    const result = await (await diamond.backfill('days', { keys: ['2024-02-03'], downstream: true })).result();
    assert.deepEqual(filledOf(result).slice(0, 2), [
      'by_day 2024-02-03..2024-02-03 1/1',
      'by_month 2024-02..2024-02 1/1',
    ]);
    assert.deepEqual(filledOf(result).slice(2), ['report undefined..undefined 0/0 not begun']);
    assert.deepEqual(result.notes, [
      `${diamond.name('report')} 2024-02 is left out: it comes after ${diamond.name('by_day')} 2024-02-05 (missing).`,
    ]);
    await (await diamond.backfill('by_day', { keys: ['2024-02-05'], downstream: true })).result();
    assert.deepEqual(await outdated(), { days: 0, by_day: 0, by_month: 0, report: 0 });
  });

  it('where one does not end whole, begins those that come after it not, and the others', async () => {
    await diamond.installation.database.sql('ALTER TABLE by_day ADD CONSTRAINT refused CHECK (doubled < 0) NOT VALID');
    const days = diamond.name('days');
    const ended = await cli('backfill', days, '2024-02-03', '--downstream');
    assert.equal(ended.code, 1, ended.stderr);
    assert.deepEqual(ended.stdout.trimEnd().split('\n').slice(-3), [
      `✗ ${diamond.name('by_day')} 2024-02-03: 0 of 1 partition filled, 1 failed`,
      `✓ ${diamond.name('by_month')} 2024-02: 1 of 1 partition filled`,
      `- ${diamond.name('report')} 2024-02: not begun`,
    ]);
    assert.ok(ended.stderr.includes(`repave backfill ${diamond.name('by_day')} 2024-02-03 --downstream`), ended.stderr);
    const [, id = ''] = /Started (\S+)/.exec(ended.stderr) ?? [];
    const status = await cli('status', id);
    assert.match(
      status.stdout,
      /incomplete\n.*1 of 1 partition filled.*\n *what depends on it is not all filled: its backfills are .*\/…/,
    );
    await diamond.installation.database.sql('ALTER TABLE by_day DROP CONSTRAINT refused');
    await (await diamond.backfill('by_day', { only: ['failed'], from: FIRST, to: LAST, downstream: true })).result();
    assert.deepEqual(await outdated(), { days: 0, by_day: 0, by_month: 0, report: 0 });
  });

  /** Refills a day, and the first that is made of it is held. */
  const heldDownstream = async () => {
    await diamond.hold('by_day', '2024-02-03');
    const backfill = await diamond.backfill('days', { keys: ['2024-02-03'], downstream: true });
    const child = `${backfill.id}/${diamond.name('by_day')}`;
    await until('what runs downstream', async () => (await progressOf(backfill))?.downstream === child);
    await diamond.installation.heldFills(1, diamond.name('by_day'));
    const handle = diamond.installation.temporal.workflow.getHandle(child);
    return { backfill, child: handle, letGo: () => diamond.release('by_day', '2024-02-03') };
  };

  it('a cancel reaches what runs downstream', async () => {
    const { backfill, child, letGo } = await heldDownstream();
    await backfill.cancel();
    await assert.rejects(backfill.result(), BackfillFailed);
    assert.equal((await child.describe()).status.name, 'CANCELLED');
    assert.deepEqual(await diamond.installation.openFills(), []);
    await letGo();
  });

  it('stopped, it begins none any more', async () => {
    const { backfill, letGo } = await heldDownstream();
    await backfill.stop();
    await letGo();
    const result = await backfill.result();
    assert.equal(result.stopped, true);
    assert.deepEqual(filledOf(result), [
      'by_day 2024-02-03..2024-02-03 1/1',
      'by_month 2024-02..2024-02 0/1 not begun',
      'report 2024-02..2024-02 0/1 not begun',
    ]);
  });

  it('paused, it begins none until it is resumed; each is filled once, whatever levers were pulled', async () => {
    const { backfill, child, letGo } = await heldDownstream();
    const before = await diamond.fills();
    await backfill.pause('lunch');
    await backfill.retryFailed();
    await letGo();
    await child.result();
    const { phase } = await until('it to have heard', async () => {
      const progress = await progressOf(backfill);
      return progress && progress.downstream === undefined && progress;
    });
    assert.equal(phase, 'paused');
    assert.deepEqual(await diamond.fills(), { ...before, by_day: Number(before.by_day) + 1 });
    await backfill.resume();
    assert.equal((await backfill.result()).downstream?.length, 3);
    const [by_day, by_month, report] = (['by_day', 'by_month', 'report'] as const).map(
      (part) => Number(before[part]) + 1,
    );
    assert.deepEqual(await diamond.fills(), { ...before, by_day, by_month, report });
  });
});
