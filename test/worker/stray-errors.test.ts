import assert from 'node:assert/strict';
import { type Bed, makeBed } from '../support/bed.js';

const MARKER = 'row-value-4711';

/** Throws where no call of `rows()` can catch it, in a way that the date chooses, and then waits for ever. */
const PIPELINE = `
import { definePipeline } from 'repave';
const broken = (): never => { throw new RangeError('${MARKER}'); };
export default definePipeline({
  target: 'daily',
  partition: { column: 'day', by: 'day' },
  retry: { attempts: 2 },
  async *rows({ key }) {
    if (key === '2024-01-01') setTimeout(broken, 1);
    if (key === '2024-01-02') void (async () => broken())();
    if (key === '2024-01-03') queueMicrotask(broken);
    if (key === '2024-01-06') setTimeout(() => process.exit(0), 1);
    if (key === '2024-01-07') try { process.exit(0); } catch { /* as a library may */ }
    if (key < '2024-01-04' || key > '2024-01-05') await new Promise((go) => setTimeout(go, 3_600_000));
    yield { day: key, n: 1 };
  },
});
`;

describe('errors outside what rows() awaits, and process.exit', () => {
  let bed: Bed;

  before(async () => (bed = await makeBed({ pipeline: PIPELINE, extension: 'ts' })));
  after(() => bed.close());

  it('fail their own fills, counted, and the worker lives on', async () => {
    const worker = await bed.worker();
    let exit: number | NodeJS.Signals | undefined;
    void worker.exited.then((code) => (exit = code));
    const handle = await bed.client.backfill({
      pipeline: bed.pipeline,
      from: '2024-01-01',
      to: '2024-01-07',
      concurrency: 1,
    });
    const ended = Promise.race([
      handle.result(),
      worker.exited.then((code) => assert.fail(`the worker ended: ${code}`)),
    ]);
    await assert.rejects(ended, { type: 'BackfillIncomplete' });
    assert.equal(exit, undefined);
    const rows = await bed.database.sql(
      'SELECT key, outcome, attempt, failure_type, failure_message FROM repave.partition ORDER BY key',
    );
    assert.deepEqual(
      rows.map((row) => [row.key, row.outcome, row.attempt, row.failure_type]),
      [
        ['2024-01-01', 'failed', 2, 'SourceFailed'],
        ['2024-01-02', 'failed', 2, 'SourceFailed'],
        ['2024-01-03', 'failed', 2, 'SourceFailed'],
        ['2024-01-04', 'filled', 1, null],
        ['2024-01-05', 'filled', 1, null],
        ['2024-01-06', 'failed', 2, 'SourceFailed'],
        ['2024-01-07', 'failed', 2, 'SourceFailed'],
      ],
    );
    for (const row of rows.slice(5)) assert.match(String(row.failure_message), /called process\.exit for 2024-01-0/);
    for (const row of rows.slice(0, 3)) {
      assert.match(String(row.failure_message), /RangeError, an error outside what rows\(\) awaits/);
    }
    for (const text of [worker.log(), JSON.stringify(rows)]) assert.ok(!text.includes(MARKER), text);
    assert.match(worker.log(), /outside what its rows\(\) awaits; the worker goes on/);
  });
});
