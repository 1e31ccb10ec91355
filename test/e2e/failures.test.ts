import assert from 'node:assert/strict';
import { appendFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BackfillFailed, type BackfillHandle } from '../../src/client.js';
import { Installation } from '../chaos/installation.js';

/** What the function in the query raises on its day, how often, and how that day then ends. */
const FAULTS = [
  { key: '2024-03-01', sqlstate: '40001', times: 2, ends: 'filled' },
  { key: '2024-03-02', sqlstate: '40P01', times: 2, ends: 'filled' },
  { key: '2024-03-03', sqlstate: '53300', times: 2, ends: 'filled' },
  // Ends its own backend.
  { key: '2024-03-04', sqlstate: '57P01', times: 2, ends: 'filled' },
  { key: '2024-03-05', sqlstate: '23514', times: 9, ends: 'DataError' },
  { key: '2024-03-06', sqlstate: '42601', times: 9, ends: 'InvalidPipeline' },
  { key: '2024-03-07', sqlstate: '42501', times: 9, ends: 'PermissionDenied' },
] as const;

const TABLES = `
  CREATE TABLE flaky (day date NOT NULL);
  CREATE TABLE thrown (day date NOT NULL);
  CREATE TABLE fault (key text PRIMARY KEY, sqlstate text NOT NULL, times int NOT NULL, calls text NOT NULL);
  CREATE FUNCTION strike(asked text) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
  DECLARE f fault;
  BEGIN
    SELECT * INTO f FROM fault WHERE key = asked;
    -- What a sequence has given is not rolled back.
    IF nextval(f.calls) > f.times THEN RETURN true; END IF;
    IF f.sqlstate = '57P01' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;
    RAISE EXCEPTION 'struck' USING ERRCODE = f.sqlstate;
  END $$;
  ${FAULTS.map(
    ({ key, sqlstate, times }, i) => `
    CREATE SEQUENCE calls_${i};
    INSERT INTO fault VALUES ('${key}', '${sqlstate}', ${times}, 'calls_${i}');`,
  ).join('')}`;

const PIPELINES = {
  'flaky.sql': `-- repave
-- target: flaky
-- partition: { column: day, by: day }
-- concurrency: 10
-- retry: { attempts: 1 }
SELECT :date AS day FROM strike(:key)
`,
  'thrown.ts': `
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { definePipeline } from 'repave';
export default definePipeline({
  target: 'thrown',
  partition: { column: 'day', by: 'day' },
  retry: { attempts: 2 },
  async *rows({ key }) {
    appendFileSync(join(process.env.REPAVE_PROJECT ?? '', 'calls'), key + '\\n');
    yield { day: key };
    if (key === '2024-03-01') throw new Error('the source is broken');
  },
});
`,
};

describe('partitions that fail', function () {
  this.timeout(300_000);
  let installation: Installation;

  before(async () => {
    installation = await Installation.open({ pipelines: PIPELINES, tables: TABLES });
    const { database } = installation;
    await database.sql(`GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO ${database.workerRole}`);
    appendFileSync(join(installation.project, 'calls'), '');
    await installation.startWorker();
  });
  after(() => installation.close());

  it('are tried again where the world failed, at growing distance, and at once final where the rows did', async () => {
    const { client, database } = installation;
    const handle = await client.backfill({ pipeline: 'flaky', from: '2024-03-01', to: '2024-03-07' });
    const { result } = await failed(handle);
    assert.deepEqual([result?.filled, result?.failed], [4, 3]);
    for (const [i, { key, times, ends }] of FAULTS.entries()) {
      const [row] = await database.sql<{ outcome: string; type: string | null; calls: number }>(
        `SELECT outcome, failure_type AS type, (SELECT last_value::int FROM calls_${i}) AS calls
           FROM repave.partition WHERE pipeline = 'flaky' AND key = $1`,
        [key],
      );
      const filled = ends === 'filled';
      assert.deepEqual(row, {
        outcome: filled ? 'filled' : 'failed',
        type: filled ? null : ends,
        calls: filled ? times + 1 : 1,
      });
      // A machine that is busy may cost a try of its own, before the source is asked: the calls are what counts.
      const [tries = 0, ...fillsAfterIt] = await attempts('flaky', key);
      assert.ok(tries >= (filled ? times + 1 : 1), `${key}: ${tries} tries`);
      assert.deepEqual(fillsAfterIt, []);
    }
    const { events } = await installation.temporal.workflow.getHandle('flaky/2024-03-01').fetchHistory();
    const policy = events?.flatMap((event) => event.activityTaskScheduledEventAttributes?.retryPolicy ?? [])[0];
    assert.deepEqual([policy?.initialInterval?.seconds?.toString(), policy?.backoffCoefficient], ['1', 2]);
  });

  it('are tried as often as the pipeline says where its source throws', async () => {
    const { client, database, project } = installation;
    const { result } = await failed(await client.backfill({ pipeline: 'thrown', keys: ['2024-03-01..2024-03-02'] }));
    assert.deepEqual(
      result?.failures.map(({ key, type }) => [key, type]),
      [['2024-03-01', 'SourceFailed']],
    );
    assert.match(result?.failures[0]?.message ?? '', /threw Error for 2024-03-01.*try 2 of 2/);
    assert.deepEqual(readFileSync(join(project, 'calls'), 'utf8').trim().split('\n').sort(), [
      '2024-03-01',
      '2024-03-01',
      '2024-03-02',
    ]);
    assert.deepEqual(await database.sql('SELECT day::text FROM thrown'), [{ day: '2024-03-02' }]);
  });

  async function failed(handle: BackfillHandle): Promise<BackfillFailed> {
    try {
      await handle.result();
    } catch (error) {
      assert.ok(error instanceof BackfillFailed, String(error));
      return error;
    }
    assert.fail('it did not fail');
  }

  /** Of each fill that the newest run of a partition has scheduled, the attempt that ended it. */
  async function attempts(pipeline: string, key: string): Promise<number[]> {
    const { events } = await installation.temporal.workflow.getHandle(`${pipeline}/${key}`).fetchHistory();
    const fills = (events ?? []).filter(
      (event) => event.activityTaskScheduledEventAttributes?.activityType?.name === 'fillPartition',
    );
    return fills.flatMap(({ eventId }) =>
      (events ?? []).flatMap(({ activityTaskStartedEventAttributes: started }) =>
        started && String(started.scheduledEventId) === String(eventId) ? [started.attempt ?? 0] : [],
      ),
    );
  }
});
