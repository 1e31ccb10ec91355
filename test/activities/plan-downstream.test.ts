import assert from 'node:assert/strict';
import { downstreamOfPlan } from '../../src/activities/plan-downstream.js';
import { createLog } from '../../src/telemetry/log.js';
import { registerPipeline } from '../../src/warehouse/ledger.js';
import { registerAgain, registerServed, type ServedPipelines } from '../../src/worker/served-pipelines.js';
import { loadSettings } from '../../src/settings.js';
import { createTestDatabase } from '../support/database.js';
import { sqlPipeline, withWorker } from '../support/fill.js';

const QUERY = 'SELECT :date AS day';
const daily = sqlPipeline(QUERY);
const cumul = { ...sqlPipeline(QUERY, { name: 'cumul', target: { table: 'cumul' } }), after: [daily.name] };
const other = sqlPipeline(QUERY, { name: 'other', target: { table: 'other' } });
const log = createLog('info', { write: () => undefined });

it('what comes after a pipeline and could not be registered when the worker started is tried again, and named where it still cannot be', async () => {
  const test = await createTestDatabase();
  try {
    await test.sql('CREATE TABLE target (day date NOT NULL)');
    await withWorker(test, async (database) => {
      const served: ServedPipelines = {
        pipelines: new Map([daily, cumul, other].map((pipeline) => [pipeline.name, pipeline])),
        broken: new Map(),
        unregistered: new Map(),
      };
      await registerServed(served, loadSettings({ DATABASE_URL: test.url }), database, test.url, log);
      assert.deepEqual([...served.unregistered.keys()].sort(), ['cumul', 'other']);
      const planned = () =>
        downstreamOfPlan(
          {
            unregistered: served.unregistered,
            registerAgain: (name) => registerAgain(served, name, (one) => registerPipeline(database, one), log),
          },
          database,
          { pipeline: daily.name, first: '2024-01-01', last: '2024-01-02' },
          { assumed: true },
        );
      const [missing, ...more] = (await planned()).pipelines;
      assert.deepEqual([missing?.pipeline, missing?.total, more], ['cumul', 0, []]);
      assert.match(missing?.unserved ?? '', /^No worker serves it: .*cumul/);
      await test.sql('CREATE TABLE cumul (day date NOT NULL)');
      const there = (await planned()).pipelines.map(({ pipeline, total, unserved }) => ({ pipeline, total, unserved }));
      assert.deepEqual(there, [{ pipeline: 'cumul', total: 2, unserved: undefined }]);
    });
  } finally {
    await test.drop();
  }
});
