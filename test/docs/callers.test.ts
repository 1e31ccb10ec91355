import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BackfillInput, BackfillResult, Progress } from '../../src/contract.js';
import { BackfillFailed, type BackfillHandle, backfillWorkflowId } from '../../src/client.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { createNamespace } from '../e2e/temporal-cli.js';
import { schema } from '../support/schemas.js';
import { shared } from '../support/servers.js';
import { testTemporal } from '../support/temporal.js';
import { pythonWithTemporal } from './python.js';
import { type Ended, type Program, run, Snippets } from './snippets.js';

const PIPELINE = `-- repave
-- target: sales_summary
-- partition: { column: sale_date, by: day }
-- start: 2024-01-01
-- checks: [{ rows: { min: 1 } }]
SELECT sold_on AS sale_date, count(*) AS orders, sum(amount) AS revenue
FROM   sales CROSS JOIN held(:key)
WHERE  sold_on >= :date AND sold_on < :end_date
GROUP  BY sold_on
`;

const TABLES = `
  CREATE TABLE sales (sold_on date NOT NULL, amount numeric(10, 2) NOT NULL);
  CREATE TABLE sales_summary (sale_date date PRIMARY KEY, orders bigint NOT NULL, revenue numeric(12, 2) NOT NULL);
  INSERT INTO sales SELECT day, 12.50 FROM generate_series(date '2024-02-01', '2024-02-29', '1 day') AS day, generate_series(1, 2);`;

/** What the page's snippets start. */
const FEBRUARY = { pipeline: 'sales_summary', from: '2024-02-01', to: '2024-02-29' } as const satisfies BackfillInput;
const LANES = 4;

describe('docs/callers.md', function () {
  this.timeout(600_000);
  const snippets = new Snippets();
  let installation: Installation;
  let folder: string;
  let python: string;
  let env: Record<string, string>;

  before(async () => {
    python = await pythonWithTemporal();
    folder = mkdtempSync(join((await shared('folder')).dir, 'callers-'));
    const { address, cli } = await testTemporal();
    mkdirSync(join(folder, 'bin'));
    symlinkSync(cli, join(folder, 'bin', 'temporal'));
    const namespace = await createNamespace();
    env = {
      PATH: `${join(folder, 'bin')}:${process.env.PATH}`,
      // Where no profile of a person's is found.
      HOME: folder,
      TEMPORAL_ADDRESS: address,
      TEMPORAL_NAMESPACE: namespace,
    };
    await ends('search-attributes', 0);
    installation = await Installation.open({
      pipelines: { 'sales_summary.sql': PIPELINE },
      tables: TABLES,
      // What the page's snippets name: in a namespace of its own.
      taskQueue: 'repave',
      namespace,
    });
    await installation.startWorker();
  });
  after(() => installation.close());
  // Not TRUNCATE, which would wait for the fills that a failed test has left held.
  beforeEach(() => installation.look('DELETE FROM brake'));

  /** Runs a snippet of the shell. */
  const shell = (name: string): Program => run('bash', ['-euo', 'pipefail', '-c', snippets.take(name)], env);
  /** Runs one to its end, which must be this. */
  const ends = async (name: string, code: number): Promise<Ended> => {
    const ended = await shell(name).ended;
    assert.equal(ended.code, code, `${name}\n${ended.stdout}\n${ended.stderr}`);
    return ended;
  };
  /** Runs a program of the page's in Python. */
  const inPython = (name: string): Program => {
    const file = join(folder, name);
    writeFileSync(file, snippets.take(name));
    return run(python, [file], env);
  };
  const progress = (): Promise<Progress> =>
    installation.temporal.workflow.getHandle(backfillWorkflowId(FEBRUARY)).query('progress');
  /** Starts what the page's snippets are about, and waits until its first fills are held. */
  const startHeld = async (): Promise<BackfillHandle> => {
    await installation.hold();
    const backfill = await installation.client.backfill(FEBRUARY);
    await installation.heldFills(LANES);
    return backfill;
  };

  it('starts or joins, asks, steers and finds by the temporal command', async () => {
    await installation.hold();
    const runs = [await ends('start', 0), await ends('start', 0)].map(({ stdout }) => /RunId +(\S+)/.exec(stdout)?.[1]);
    assert.ok(runs[0]);
    assert.equal(runs[1], runs[0], 'the second has joined the first');
    await installation.heldFills(LANES);
    assert.match((await ends('query', 0)).stdout, /"phase": ?"filling"/);

    await ends('pause', 0);
    const paused = await progress();
    assert.deepEqual([paused.phase, paused.paused?.reason], ['paused', 'the warehouse is being copied']);
    assertFits('progress', paused);
    await ends('set-concurrency', 0);
    assert.equal((await progress()).concurrency, 2);
    await ends('steer', 0);
    await until('the signal', async () => (await progress()).concurrency === 8);
    await ends('resume', 0);
    assert.equal((await progress()).phase, 'filling');

    await installation.release();
    assert.match((await ends('result', 0)).stdout, /"filled": ?29/);
    await until('the last child is found', async () =>
      (await ends('list', 0)).stdout.includes('sales_summary/2024-02-29'),
    );
  });

  it('plans without writing, and fills one partition', async () => {
    const fills = async (): Promise<unknown> => installation.database.sql('SELECT count(*) FROM repave.fill');
    const before = await fills();
    assert.match((await ends('plan', 0)).stdout, /"plan": ?"p1-/);
    assert.deepEqual(await fills(), before);
    assert.match((await ends('partition', 0)).stdout, /"rows": ?1/);
    assert.notDeepEqual(await fills(), before);
  });

  it('stops: what runs is finished, and the end says so', async () => {
    const backfill = await startHeld();
    const { stdout } = await ends('stop', 0);
    assert.match(stdout, /"?stopping"?: ?true/);
    await installation.release();
    const result = await backfill.result();
    assert.deepEqual([result.stopped, result.filled], [true, LANES]);
    assertFits('backfill-result', result);
  });

  it('cancels: by the command, and in Python once it is over', async () => {
    const first = await startHeld();
    await ends('cancel', 0);
    await assert.rejects(first.result(), (error) => error instanceof BackfillFailed && error.type === 'Cancelled');
    assert.match((await ends('result', 1)).stdout, /CANCELED/i);
    await installation.release();

    const second = await startHeld();
    const { code, stdout, stderr } = await inPython('cancel.py').ended;
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^cancelled: /);
    await assert.rejects(second.result());
    assert.deepEqual(await installation.openFills(), [], 'nothing of it is left');
  });

  it('follows a backfill in Python, and tells what failed from what went wrong', async () => {
    await installation.database.sql(`DELETE FROM sales WHERE sold_on = '2024-02-13'`);
    await installation.hold('2024-02-20');
    const following = inPython('backfill.py');
    await following.says(/^filling: \d+ of 29$/m);
    await installation.release('2024-02-20');
    const incomplete = await following.ended;
    assert.equal(incomplete.code, 1, incomplete.stderr);
    assert.match(incomplete.stdout, /^1 of 29 failed, the others are filled\n {2}2024-02-13: CheckFailed: /m);
    const failed = await installation.client
      .backfill(FEBRUARY)
      .then((again) => again.result().catch((error: unknown) => error));
    assert.ok(failed instanceof BackfillFailed);
    assertFits('backfill-incomplete-details', [failed.result satisfies BackfillResult | undefined]);

    await installation.database.sql(`INSERT INTO sales VALUES ('2024-02-13', 12.50)`);
    const whole = await inPython('backfill.py').ended;
    assert.equal(whole.code, 0, whole.stderr);
    assert.match(whole.stdout, /^29 filled, 29 rows$/m);
  });

  it('pulls levers in Python, and is told what is wrong with one', async () => {
    const backfill = await startHeld();
    const { code, stdout, stderr } = await inPython('levers.py').ended;
    assert.equal(code, 0, stderr);
    const [paused, refused, concurrency, goesOn] = stdout.trimEnd().split('\n');
    assert.match(paused ?? '', /^paused since \d{4}-/);
    assert.match(refused ?? '', /^refused: .*concurrency must be .*1 to 100/);
    assert.equal(concurrency, 'from now on 2 at once');
    assert.equal(goesOn, 'goes on');
    await installation.release();
    assert.equal((await backfill.result()).filled, 29);
  });

  it('does the same in TypeScript', async () => {
    const client = new URL('../../src/client.ts', import.meta.url).href;
    const text = snippets.take('ts');
    assert.match(text, /from 'repave\/client'/);
    const file = join(folder, 'caller.mts');
    writeFileSync(file, text.replace("'repave/client'", `'${client}'`));
    const ended = await run(process.execPath, ['--import', 'tsx', file], env).ended;
    assert.equal(ended.code, 0, ended.stderr);
    assert.match(ended.stdout, /^29 filled, 29 rows$/m);
  });

  it('has no snippet that was not run', () => assert.deepEqual(snippets.left, []));
});

function assertFits(name: string, value: unknown): void {
  const validate = schema(name);
  assert.ok(validate(JSON.parse(JSON.stringify(value))), `${name}: ${JSON.stringify(validate.errors)}`);
}
