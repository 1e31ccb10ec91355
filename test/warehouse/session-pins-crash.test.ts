import assert from 'node:assert/strict';
import type { PostgresServer } from '../../src/dev/postgres.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { migrate } from '../../src/warehouse/migrate.js';
import { startPrivatePostgres } from '../support/database.js';
import { fillRequest, KEY, sqlPipeline } from '../support/fill.js';
import { type StatementHooks, withStatements } from '../support/statements.js';
import { withClient } from '../support/template.js';

const SETTINGS = {
  // What the role, or the server, has by default. Nothing is flushed soon by itself.
  synchronous_commit: 'off',
  default_transaction_isolation: 'repeatable read',
  wal_writer_delay: '10s',
  wal_writer_flush_after: '0',
  autovacuum: 'off',
};

const pipeline = sqlPipeline('SELECT :date::date AS day, 2 AS n', { target: { schema: 'shop', table: 'target' } });

describe('a crash right after a fill, where the default is synchronous_commit = off', () => {
  let server: PostgresServer;

  beforeEach(async () => {
    server = await startPrivatePostgres({ settings: SETTINGS });
    await withDatabase(migrate);
    await withClient(server.url(), async (client) => {
      await client.query(
        `CREATE SCHEMA shop; CREATE TABLE shop.target (day date NOT NULL, n int); INSERT INTO shop.target VALUES ('${KEY}', 1)`,
      );
      await client.query('CHECKPOINT');
    });
  });
  afterEach(async () => {
    await server.stop('immediate');
  });

  it('takes nothing of the fill away', async () => {
    await fillThenCrash({});
    assert.deepEqual(await held(), { rows: [{ n: 2 }], fills: 1 });
  });

  it('would take it away, were the setting not pinned', async () => {
    const as = (text: string): string =>
      text.replaceAll("WHEN pg_catalog.current_setting('synchronous_commit') IN ('off', 'local')", 'WHEN false');
    // Each time but when the WAL writer has just come by.
    for (let fills = 0; fills < 5; fills++) {
      const before = await held();
      await fillThenCrash({ rewrite: ({ text, values }) => ({ text: as(text), values }) });
      if ((await held()).fills > fills) continue;
      return assert.deepEqual(await held(), before, 'old rows, and a ledger that agrees');
    }
    assert.fail('it was there each time');
  });

  async function fillThenCrash(hooks: StatementHooks): Promise<void> {
    await withDatabase(async (database) => {
      const outcome = await withStatements(hooks, () => fill(database, fillRequest(pipeline)));
      assert.equal(outcome.rows, 1);
      await server.stop('immediate');
    });
    server = await startPrivatePostgres({ settings: SETTINGS, dir: server.dir });
  }

  async function held(): Promise<{ readonly rows: readonly unknown[]; readonly fills: number }> {
    return withClient(server.url(), async (client) => ({
      rows: (await client.query('SELECT n FROM shop.target')).rows as unknown[],
      fills: (await client.query('SELECT FROM repave.fill')).rows.length,
    }));
  }

  async function withDatabase(work: (database: Database) => Promise<unknown>): Promise<void> {
    const database = await openDatabase(server.url(), { fills: 2 });
    try {
      await work(database);
    } finally {
      await database.close();
    }
  }
});
