import assert from 'node:assert/strict';
import { keyAt } from '../../src/calendar/range.js';
import { stateOf } from '../../src/warehouse/partition-state.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { partitionRows, pipelineCounts } from '../../src/warehouse/partitions.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, sqlPipeline } from '../support/fill.js';

const pipeline = sqlPipeline('SELECT :date::date AS day, n FROM source');

describe('a day that is filled before it is over', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 2 });
    await test.sql(`CREATE TABLE source (n int); INSERT INTO source VALUES (1);
      CREATE TABLE target (day date NOT NULL, n int)`);
  });
  after(async () => {
    await database.close();
    await test.drop();
  });

  it('is outdated until it is filled again after its end, and never called complete before', async () => {
    const key = keyAt(pipeline.partition, new Date().toISOString());
    const request = fillRequest(pipeline, { key });
    const fillUntil = (end: number) =>
      fill(database, {
        ...fillRequest(pipeline, { key }),
        window: { ...request.window, end: new Date(end).toISOString() },
      });
    const stand = async () => {
      const row = (await partitionRows(database, pipeline.name)).get(key);
      const { filled, outdated } = await pipelineCounts(database, pipeline.name, pipeline.fingerprint);
      return { state: stateOf(row, pipeline.fingerprint), rows: row?.rows, filled, outdated };
    };

    // In the middle of the day, twice.
    for (let time = 0; time < 2; time++) {
      const outcome = await fillUntil(Date.now() + 3_600_000);
      assert.deepEqual(outcome.warnings, ['unfinished']);
      assert.deepEqual(await stand(), { state: 'outdated', rows: 1, filled: 0, outdated: 1 });
    }

    await test.sql('INSERT INTO source VALUES (2)');
    // After midnight.
    const outcome = await fillUntil(Date.now());
    assert.deepEqual([outcome.warnings, outcome.deleted, outcome.rows], [[], 1, 2]);
    assert.deepEqual(await stand(), { state: 'filled', rows: 2, filled: 1, outdated: 0 });
  });
});
