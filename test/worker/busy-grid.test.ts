import assert from 'node:assert/strict';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { loadSettings } from '../../src/settings.js';
import { createLog } from '../../src/telemetry/log.js';
import type { Database } from '../../src/warehouse/database.js';
import { registeredPipelines, registerPipeline } from '../../src/warehouse/ledger.js';
import { gridLock } from '../../src/warehouse/lock.js';
import { registerAgain, registerServed, type ServedPipelines } from '../../src/worker/served-pipelines.js';
import { createTestDatabase } from '../support/database.js';
import { failsAs, sqlPipeline, withWorker } from '../support/fill.js';
import { withStatements } from '../support/statements.js';
import { withClient } from '../support/template.js';

const before = sqlPipeline('SELECT :date AS day');
const changed = { ...before, partition: { ...before.partition, zone: 'Asia/Tokyo' } };
const other = sqlPipeline('SELECT :date AS day', { name: 'other', target: { table: 'other' } });
const log = createLog('info', { write: () => undefined });
/** Registers as a worker does, which waits a minute for the fills that run, in no time. */
const atOnce = <T>(work: () => Promise<T>): Promise<T> =>
  withStatements(
    { rewrite: ({ text, values }) => ({ text, values: values.map((value) => (value === '60000' ? '300' : value)) }) },
    work,
  );

it('a worker with another calendar than a fill that runs serves all else, and that pipeline once the fill has ended', async () => {
  const test = await createTestDatabase();
  try {
    await test.sql('CREATE TABLE target (day date NOT NULL); CREATE TABLE other (day date NOT NULL)');
    await withWorker(test, async (database) => {
      await registerPipeline(database, before);
      const served: ServedPipelines = {
        pipelines: new Map([changed, other].map((pipeline) => [pipeline.name, pipeline])),
        broken: new Map(),
        unregistered: new Map(),
      };
      const register = (pipeline: Pipeline) => registerPipeline(database, pipeline);
      const again = () => registerAgain(served, changed.name, register, log);
      await withClient(test.url, async (filling) => {
        await filling.query('BEGIN');
        await filling.query('SELECT pg_advisory_xact_lock_shared($1)', [await grid(database)]);
        await atOnce(() => registerServed(served, loadSettings({ DATABASE_URL: test.url }), database, test.url, log));
        assert.deepEqual([...served.pipelines.keys()], ['other']);
        assert.match(
          served.broken.get(changed.name)?.message ?? '',
          /fills of target that run, .* still go by the old/,
        );
        await failsAs(atOnce(again), 'Conflict');
        await filling.query('COMMIT');
      });
      assert.deepEqual(await Promise.all([again(), again()]), [changed, changed]);
      assert.deepEqual([...served.pipelines.keys()], ['other', changed.name]);
      assert.deepEqual([served.broken.size, served.unregistered.size], [0, 0]);
      const [, now] = await registeredPipelines(database);
      assert.equal(now?.zone, 'Asia/Tokyo');
    });
  } finally {
    await test.drop();
  }
});

async function grid(database: Database): Promise<string> {
  const [row] = await database.query<{ root: number }>(`SELECT 'target'::regclass::oid::int8::float8 AS root`);
  return gridLock({ root: row?.root ?? 0 });
}
