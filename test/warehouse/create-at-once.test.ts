import assert from 'node:assert/strict';
import { createMissingPartition } from '../../src/warehouse/create-partition.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, sqlPipeline, within, withWorker } from '../support/fill.js';
import { lockWaits, untilLetGo } from '../support/lock-waits.js';
import { type StatementHooks, unhooked, withStatements } from '../support/statements.js';
import { asSuperuser } from '../support/superuser.js';
import { withClient } from '../support/template.js';

const pipelineOf = (table: string) =>
  sqlPipeline('SELECT :date::date AS day, k AS n FROM generate_series(1, 3) k', {
    name: table,
    target: { table },
    create: true,
  });
const pipeline = pipelineOf('target');

describe('missing parts of partitioned targets, with others at work', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(() => test.drop());
  beforeEach(async () => {
    await emptyDatabase(test);
    await asSuperuser(test, `GRANT CREATE ON SCHEMA public TO ${test.workerRole}`);
    await own(
      ['target', 'other'].map((table) => `CREATE TABLE ${table} (day date NOT NULL, n int) PARTITION BY RANGE (day)`),
    );
  });

  const own = (statements: readonly string[]) =>
    asSuperuser(test, ['SET search_path = public', `SET ROLE ${test.workerRole}`, ...statements].join('; '));
  const parts = async (table = 'target'): Promise<number> =>
    (await asSuperuser(test, `SELECT FROM pg_inherits WHERE inhparent = '${table}'::regclass`)).length;

  it('are made once by runs that fill one window at once', async () => {
    let tried = 0;
    const before: StatementHooks['before'] = ({ text }) => void (tried += text.startsWith('CREATE TABLE') ? 1 : 0);
    await withWorker(
      test,
      (database) =>
        withStatements({ before, rewrite: untilLetGo }, () =>
          Promise.all(Array.from({ length: 8 }, () => fill(database, fillRequest(pipeline)))),
        ),
      { fills: 8 },
    );
    // Those who waited looked again, and none ran into the other's table.
    assert.equal(tried, 1);
    assert.equal(await parts(), 1);
    assert.equal((await fills(test)).length, 8);
    assert.deepEqual(await asSuperuser(test, 'SELECT count(*)::int AS rows FROM target'), [{ rows: 3 }]);
  });

  it('are made for two targets, 20 windows each, at once: the first ones of both among them', async () => {
    const keys = Array.from({ length: 20 }, (_, i) => `2024-03-${String(i + 1).padStart(2, '0')}`);
    const left = keys.flatMap((key) => ['target', 'other'].map((table) => ({ table, key })));
    const AT_ONCE = 12;
    await withWorker(
      test,
      async (database) => {
        const lane = async (): Promise<void> => {
          for (let next = left.shift(); next; next = left.shift())
            await fill(database, fillRequest(pipelineOf(next.table), next));
        };
        await withStatements({ rewrite: untilLetGo }, () => Promise.all(Array.from({ length: AT_ONCE }, lane)));
      },
      { fills: AT_ONCE },
    );
    for (const table of ['target', 'other']) {
      assert.equal(await parts(table), 20);
      const rows = await asSuperuser(
        test,
        `SELECT day::text, count(*)::int AS rows FROM ${table} GROUP BY day ORDER BY day`,
      );
      assert.deepEqual(
        rows,
        keys.map((day) => ({ day, rows: 3 })),
      );
    }
  });

  it('are made where somebody else makes the same one meanwhile, under another name', async () => {
    await withWorker(test, (database) =>
      withStatements(
        {
          before: async ({ text }) => {
            if (!text.startsWith('CREATE TABLE')) return;
            await unhooked(() =>
              own([
                `CREATE TABLE IF NOT EXISTS theirs PARTITION OF target FOR VALUES FROM ('${KEY}') TO ('2024-03-01')`,
              ]),
            );
          },
        },
        () => fill(database, fillRequest(pipeline)),
      ),
    );
    assert.deepEqual(
      await asSuperuser(
        test,
        `SELECT inhrelid::regclass::text AS part FROM pg_inherits WHERE inhparent = 'target'::regclass`,
      ),
      [{ part: 'theirs' }],
    );
  });

  it('keep no reader and no writer of another part waiting', async () => {
    await own([
      `CREATE TABLE march PARTITION OF target FOR VALUES FROM ('2024-03-01') TO ('2024-04-01')`,
      `INSERT INTO target VALUES ('2024-03-05', 1)`,
    ]);
    const read = `SELECT n FROM target WHERE day = '2024-03-05'`;
    let seen: unknown;
    await withClient(test.superuserUrl, async (reader) => {
      await reader.query(`BEGIN ISOLATION LEVEL REPEATABLE READ; ${read}; DELETE FROM target WHERE day = '2024-03-06'`);
      await withWorker(test, (database) =>
        withStatements(
          {
            after: async ({ text }) => {
              if (!text.includes('ATTACH PARTITION')) return;
              // The part is attached and not yet committed: its lock on the table is held.
              await unhooked(async () => {
                const begun = within(
                  'a reader and a writer that come now',
                  Promise.all([
                    asSuperuser(test, read),
                    asSuperuser(test, `INSERT INTO target VALUES ('2024-03-07', 2)`),
                    reader.query(read),
                  ]),
                );
                seen = (await begun)[0];
              });
            },
          },
          () => createMissingPartition(database, fillRequest(pipeline), 1),
        ),
      );
      await reader.query('COMMIT');
    });
    assert.deepEqual(seen, [{ n: 1 }]);
    assert.equal(await parts(), 2);
  });

  it('leave nothing behind where the maker dies between CREATE and ATTACH, and are made by the next', async () => {
    await withWorker(test, async (database) => {
      const failure = await failsAs(
        withStatements(
          {
            before: async ({ text }) => {
              if (!text.includes('ATTACH PARTITION')) return;
              await unhooked(() =>
                asSuperuser(
                  test,
                  `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                    WHERE datname = current_database() AND query LIKE 'CREATE TABLE%' AND pid <> pg_backend_pid()`,
                ),
              );
            },
          },
          () => fill(database, fillRequest(pipeline)),
        ),
        'DatabaseUnavailable',
      );
      assert.match(failure.message, /57P01|lost/);
      assert.deepEqual(await asSuperuser(test, `SELECT relname FROM pg_class WHERE relname ~ '^target_'`), []);
      assert.equal((await fill(database, fillRequest(pipeline))).rows, 3);
    });
    assert.equal(await parts(), 1);
  });

  it('come again as a Conflict where the table is locked for long, and hold no lock meanwhile', async () => {
    await withClient(test.superuserUrl, async (blocker) => {
      await blocker.query('BEGIN; LOCK TABLE target IN SHARE UPDATE EXCLUSIVE MODE');
      const failure = await withWorker(test, (database) =>
        failsAs(
          withStatements({ rewrite: lockWaits(50) }, () => fill(database, fillRequest(pipeline))),
          'Conflict',
        ),
      );
      assert.match(failure.message, /could not be made.*ATTACH PARTITION waits for/);
      await blocker.query('COMMIT');
    });
    assert.equal(await parts(), 0);
  });

  it('are given up when the fill is cancelled while it waits', async () => {
    const cancel = new AbortController();
    await withClient(test.superuserUrl, async (blocker) => {
      await blocker.query('BEGIN; LOCK TABLE target IN SHARE UPDATE EXCLUSIVE MODE');
      const reason = new Error('cancelled by the test');
      await withWorker(test, (database) =>
        withStatements(
          {
            before: ({ text }) => {
              if (text.includes('ATTACH PARTITION')) setTimeout(() => cancel.abort(reason), 20);
            },
          },
          () => assert.rejects(fill(database, fillRequest(pipeline, { signal: cancel.signal })), reason),
        ),
      );
      const open = await asSuperuser(
        test,
        `SELECT query FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%ATTACH%' AND state = 'active' AND pid <> pg_backend_pid()`,
      );
      assert.deepEqual(open, []);
      await blocker.query('COMMIT');
    });
    assert.equal(await parts(), 0);
  });
});
