import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from '../../src/dev/postgres.js';
import { openDatabase } from '../../src/warehouse/database.js';
import { changing, moved, versions } from '../support/changed.js';
import { createTestDatabase, startPrivatePostgres, type TestDatabase } from '../support/database.js';
import { KEY, withWorker } from '../support/fill.js';
import { relay, SOURCE } from '../support/source-database.js';
import { withClient } from '../support/template.js';

const QUERY = 'SELECT sold_on AS day, sum(amount) AS n FROM sales WHERE sold_on = :date GROUP BY 1';
/** Nobody else begins a transaction that gets a number. */
const SETTINGS = { autovacuum: 'off' };

describe('`changed: rows` of a server that went on from another’s copy', () => {
  let test: TestDatabase;
  const servers: PostgresServer[] = [];

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, n bigint)');
  });
  after(async () => {
    await Promise.all([test.drop(), ...servers.map((server) => server.stop())]);
  });

  const started = async (options: Parameters<typeof startPrivatePostgres>[0]): Promise<PostgresServer> => {
    const server = await startPrivatePostgres({ ...options, settings: { ...SETTINGS, ...options?.settings } });
    servers.push(server);
    return server;
  };
  const run = (server: PostgresServer, sql: string) =>
    withClient(server.url(), async (client) => (await client.query<Record<string, unknown>>(sql)).rows);

  /** A server, and one that goes on from its copy without what is committed there from now on, as a standby that takes over does. */
  const forked = async (): Promise<readonly [PostgresServer, PostgresServer]> => {
    const first = await started({});
    await run(
      first,
      `CREATE TABLE sales (sold_on date NOT NULL, amount int NOT NULL); INSERT INTO sales VALUES ('${KEY}', 1), ('${KEY}', 2)`,
    );
    await first.stop();
    const signal = join(first.dir, 'data', 'recovery.signal');
    writeFileSync(signal, '');
    const second = await started({ template: first.dir, settings: { restore_command: 'false' } });
    rmSync(signal);
    return [await started({ dir: first.dir }), second];
  };

  it('finds that the number of a transaction was given to another', async () => {
    const [first, second] = await forked();
    const pipeline = await changing('rows', QUERY, { source: SOURCE });
    await run(first, 'UPDATE sales SET amount = 10 WHERE amount = 1');
    await run(second, 'UPDATE sales SET amount = 1000 WHERE amount = 1');
    const numbers = (server: PostgresServer) => run(server, 'SELECT xmin::text FROM sales ORDER BY 1');
    assert.deepEqual(await numbers(first), await numbers(second));
    await withWorker(test, async (database) => {
      const askedOf = async (server: PostgresServer, fills: boolean): Promise<string[]> => {
        const source = await openDatabase(server.url(), { fills: 1, readOnly: true });
        try {
          if (fills) await relay(database, source, pipeline);
          return await moved(database, pipeline, { source });
        } finally {
          await source.close();
        }
      };
      assert.deepEqual(await askedOf(first, true), []);
      assert.deepEqual(await askedOf(second, false), [KEY]);
      assert.deepEqual(await askedOf(second, true), []);
    });
    const timelines = (await versions(test, pipeline, KEY)).fills.map(
      (version) => /^\d+\/(\d+) /.exec(version ?? '')?.[1],
    );
    assert.deepEqual(timelines, ['1', '2']);
  });

  it('does without where the role may not know which server it is', async () => {
    const server = await started({});
    await run(
      server,
      `CREATE TABLE sales (sold_on date NOT NULL, amount int NOT NULL); INSERT INTO sales VALUES ('${KEY}', 1);
       REVOKE EXECUTE ON FUNCTION pg_control_system FROM PUBLIC; CREATE ROLE reader LOGIN PASSWORD 'x'; GRANT SELECT ON sales TO reader`,
    );
    const pipeline = await changing('rows', QUERY, { name: 'unnamed', source: SOURCE });
    const url = new URL(server.url());
    [url.username, url.password] = ['reader', 'x'];
    await test.sql('DELETE FROM repave.pipeline');
    const source = await openDatabase(url.href, { fills: 1, readOnly: true });
    try {
      await withWorker(test, async (database) => {
        await relay(database, source, pipeline);
        assert.match((await versions(test, pipeline, KEY)).now ?? '', /^1 -?\d+ by /);
        assert.deepEqual(await moved(database, pipeline, { source }), []);
      });
    } finally {
      await source.close();
    }
  });
});
