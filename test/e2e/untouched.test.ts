import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../../src/dev/bare-environment.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { withClient } from '../support/template.js';
import { createProject } from '../support/worker.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** It asks for a database, the Temporal server and a worker. */
const TEST = 'test/e2e/deaf-source.test.ts';

describe('a database that the environment of a test run names', function () {
  // A whole run of its own, with a new cluster of PostgreSQL.
  this.timeout(900_000);
  let theirs: TestDatabase;

  before(async () => {
    theirs = await createTestDatabase({ ledger: false });
    await asOwner(`CREATE TABLE sales AS SELECT n AS id, md5(n::text) AS note FROM generate_series(1, 1000) AS n`);
  });
  after(() => theirs.drop());

  it('is never connected to, and stays as it was', async () => {
    const project = await createProject({});
    const profile = join(project, 'their-profile.toml');
    writeFileSync(profile, '[profile.default]\naddress = "127.0.0.1:9"\nnamespace = "theirs"\n');
    const { hostname, port, pathname, username, password } = new URL(theirs.ownerUrl);
    const before = [await contents(), await sessions()];
    const { code, said } = await mocha({
      DATABASE_URL: theirs.ownerUrl,
      REPAVE_MIGRATE_URL: theirs.ownerUrl,
      PGHOST: hostname,
      PGPORT: port,
      PGDATABASE: pathname.slice(1),
      PGUSER: username,
      PGPASSWORD: password,
      TEMPORAL_ADDRESS: '127.0.0.1:9',
      TEMPORAL_NAMESPACE: 'theirs',
      TEMPORAL_CONFIG_FILE: profile,
      REPAVE_TASK_QUEUE: 'theirs',
    });
    assert.equal(code, 0, said);
    assert.match(said, /1 passing/);
    const after = await sessions();
    assert.deepEqual([await contents(), after], before);
  });

  const contents = () =>
    asOwner(`SELECT (SELECT md5(string_agg(s::text, ',' ORDER BY id)) FROM sales s) AS sales,
                       (SELECT array_agg(relname ORDER BY relname) FROM pg_class WHERE relnamespace = 'public'::regnamespace) AS tables,
                       to_regnamespace('repave') AS ledger`);

  /** Ends its session at once, which has the server count it before the next question. */
  const asOwner = (text: string): Promise<unknown[]> =>
    withClient(theirs.ownerUrl, async (owner) => (await owner.query<object>(text)).rows);

  /** How many sessions the database has ever had, asked from another. */
  const sessions = (): Promise<unknown[]> =>
    withClient(new URL('/postgres', theirs.superuserUrl).href, async (superuser) => {
      const asked = 'SELECT sessions::int FROM pg_stat_database WHERE datname = $1';
      return (await superuser.query<object>(asked, [theirs.name])).rows;
    });
});

/** Runs one test file in a run of its own, as from a shell with these variables. */
async function mocha(theirs: Record<string, string>): Promise<{ code: number | null; said: string }> {
  // A run of its own has servers of its own: nothing of this one's must reach it.
  const { REPAVE_TEST_SERVERS: _, ...env } = { ...bareEnvironment(), ...theirs };
  const child = spawn(
    process.execPath,
    ['node_modules/mocha/bin/mocha.js', '--no-config', '--import=tsx', '--require', 'test/support/servers.ts', TEST],
    { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, said }));
  });
}
