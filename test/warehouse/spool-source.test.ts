import assert from 'node:assert/strict';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, typescriptPipeline, withWorker } from '../support/fill.js';

describe('the rows of a TypeScript source', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(
      `CREATE TABLE target (day date NOT NULL, n int, note text); INSERT INTO target VALUES ('${KEY}', -1, 'old')`,
    );
  });

  it('are read again where another run’s fill has overtaken them', async () => {
    let reads = 0;
    await withWorker(test, async (database) => {
      const other = typescriptPipeline(({ key }) => [{ day: key, n: 7, note: 'other' }]);
      const pipeline = typescriptPipeline(async function* ({ key }) {
        reads += 1;
        yield { day: key, n: reads, note: 'mine' };
        if (reads === 1) await fill(database, fillRequest(other));
      });
      const outcome = await fill(database, fillRequest(pipeline));
      assert.deepEqual([outcome.rows, outcome.deleted], [1, 1]);
    });
    assert.equal(reads, 2);
    assert.deepEqual(await test.sql('SELECT n, note FROM target'), [{ n: 2, note: 'mine' }]);
    assert.equal((await fills(test)).length, 2);
  });

  it('that are overtaken each time end as Conflict, and the other’s stand', async () => {
    let reads = 0;
    await withWorker(test, async (database) => {
      const other = typescriptPipeline(({ key }) => [{ day: key, n: 7, note: 'other' }]);
      const pipeline = typescriptPipeline(async function* ({ key }) {
        reads += 1;
        yield { day: key, n: reads, note: 'mine' };
        await fill(database, fillRequest(other));
      });
      const failure = await failsAs(fill(database, fillRequest(pipeline)), 'Conflict');
      assert.match(failure.message, new RegExp(`${reads} times`));
    });
    assert.ok(reads > 1);
    assert.deepEqual(await test.sql('SELECT n, note FROM target'), [{ n: 7, note: 'other' }]);
  });

  it('of a source that ignores its signal hold no cancel up', async () => {
    const cancel = new AbortController();
    const reason = new Error('cancelled');
    let returned = false;
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(async function* ({ key }) {
        try {
          yield { day: key, n: 1, note: 'a' };
          cancel.abort(reason);
          await new Promise(() => undefined);
        } finally {
          returned = true;
        }
      });
      await assert.rejects(
        fill(database, fillRequest(pipeline, { signal: cancel.signal })),
        (error) => error === reason,
      );
    });
    assert.equal(returned, false, 'it still waits, and nobody waits for it');
  });

  it('of a source that is left are told so, once: `return` is called', async () => {
    let returned = 0;
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(function* ({ key }) {
        try {
          for (;;) yield { day: key, wrong: 1 };
        } finally {
          returned += 1;
        }
      });
      await failsAs(fill(database, fillRequest(pipeline)), 'SchemaMismatch');
    });
    assert.equal(returned, 1);
  });
});
