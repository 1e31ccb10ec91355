import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { backfillProgress } from '../../src/warehouse/backfill-progress.js';
import {
  beginBackfill,
  endBackfill,
  failedKeys,
  noteBackfill,
  readBackfills,
  runKeys,
  storeRunKeys,
} from '../../src/warehouse/backfills.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { describePipeline } from '../../src/warehouse/describe.js';
import { endFill } from '../../src/warehouse/end-fill.js';
import { fill } from '../../src/warehouse/fill.js';
import { ledgerSizes } from '../../src/warehouse/ledger-size.js';
import { ledgerId, registeredPipelines, registerPipeline } from '../../src/warehouse/ledger.js';
import { grantsFor } from '../../src/warehouse/migrate.js';
import { recordTold, toldOf } from '../../src/warehouse/notices.js';
import { partitionHistory, partitionRows, pipelineCounts } from '../../src/warehouse/partitions.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, KEY, sqlPipeline, typescriptPipeline } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';
import { withClient } from '../support/template.js';

const SETTINGS = {
  name: 'sales',
  target: { schema: 'shop', table: 'Sales' },
  checks: [
    { kind: 'unique', columns: ['n'] },
    { kind: 'not_null', columns: ['n'] },
  ],
} as const;
const query = sqlPipeline('SELECT :date::date AS day, k AS n FROM generate_series(1, 3) k', SETTINGS);
const code = typescriptPipeline(({ key }) => [{ day: key, n: 1 }], SETTINGS);

/** All that a worker asks of a database in its life. */
async function live(database: Database): Promise<void> {
  await ledgerId(database);
  await registerPipeline(database, query);
  await registerPipeline(database, query);
  // Renamed, and named back.
  await registerPipeline(database, { ...query, name: 'sold', formerly: 'sales' });
  await registerPipeline(database, { ...query, formerly: 'sold' });
  await registeredPipelines(database);
  assert.deepEqual((await describePipeline(database, query)).problems, []);

  const run = randomUUID();
  await beginBackfill(database, { run, id: `backfill/sales/${run}`, pipeline: 'sales', input: {}, total: 2 });
  await storeRunKeys(database, run, [KEY, '2024-03-01']);
  await storeRunKeys(database, run, [KEY, '2024-03-01']);
  assert.deepEqual(await runKeys(database, run, 1, 10), ['2024-03-01']);
  for (const pipeline of [query, code, query]) await fill(database, fillRequest(pipeline, { run: randomUUID() }));

  const lost = fillRequest({ ...query, target: { schema: 'shop', table: 'none' } });
  await failsAs(fill(database, lost), 'SchemaMismatch');
  const work = { pipeline: 'sales', key: KEY, run: lost.owner.run };
  assert.equal(await endFill(database, work), undefined);
  const failure = { attempt: 1, type: 'SchemaMismatch', message: 'not there' } as const;
  await recordFailure(database, { ...work, ...failure, backfill: run, startedBy: 'ana@laptop' });
  assert.equal((await partitionRows(database, 'sales')).get(KEY)?.outcome, 'failed');

  // What the pipeline does wrong is counted on the claim.
  const broken = typescriptPipeline(() => {
    throw new Error('no');
  }, SETTINGS);
  assert.equal(
    (
      await failsAs(
        fill(database, fillRequest({ ...broken, retry: { attempts: 1, giveUpAfterMs: 1 } })),
        'SourceFailed',
      )
    ).final,
    true,
  );
  assert.equal((await partitionHistory(database, 'sales', KEY)).length > 3, true);
  await pipelineCounts(database, 'sales', query.fingerprint);
  // What steers a backfill, and what those see who look at it.
  const paused = { by: 'lever', since: new Date().toISOString() } as const;
  await noteBackfill(database, { run, concurrency: 2, paused, stopping: false });
  assert.deepEqual(await failedKeys(database, run, undefined, 10), [KEY]);
  const progress = await backfillProgress(database, run);
  assert.deepEqual([progress?.failed, progress?.concurrency, progress?.paused], [1, 2, paused]);
  assert.equal((await ledgerSizes(database, 86_400_000)).length, 7);
  await recordTold(database, `${run}/backfill-ended url`);
  assert.deepEqual(await toldOf(database, ['another']), new Set());
  await endBackfill(database, { run, outcome: 'incomplete', filled: 1, failed: 1, skipped: 0, rows: 3 });
  assert.equal((await readBackfills(database, { pipeline: 'sales', limit: 1 }))[0]?.outcome, 'incomplete');
}

/** One privilege on one object. */
interface Atom {
  readonly privilege: string;
  readonly object: string;
}

/** A GRANT statement taken apart into the least that could be granted. */
function atoms(grant: string): Atom[] {
  const [, privileges = '', kind = '', objects = ''] =
    /^GRANT ([A-Z, ]+) ON (DATABASE |SCHEMA |FUNCTION )?(.+) TO /.exec(grant) ?? [];
  assert.ok(objects, grant);
  // A function's arguments are a list of their own.
  return privileges
    .split(', ')
    .flatMap((privilege) =>
      objects.split(/, (?![^(]*\))/).map((object) => ({ privilege, object: `${kind}${object}` })),
    );
}

describe('the grants of a worker’s role', () => {
  const role = `grants_${randomBytes(6).toString('hex')}`;
  let test: TestDatabase;
  let url: string;
  let grants: string[];

  before(async () => {
    test = await createTestDatabase();
    await asSuperuser(
      test,
      `CREATE ROLE ${role} LOGIN PASSWORD 'secret'; REVOKE ALL ON DATABASE ${test.name} FROM PUBLIC`,
    );
    await test.sql(
      'CREATE SCHEMA shop; CREATE TABLE shop."Sales" (day date NOT NULL, n int, id int GENERATED ALWAYS AS IDENTITY)',
    );
    const at = new URL(test.url);
    at.username = role;
    at.password = 'secret';
    url = at.href;
    grants = grantsFor(role, test.name, [query]);
  });
  after(async () => {
    await test.drop();
    const other = await createTestDatabase();
    await asSuperuser(other, `DROP ROLE ${role}`);
    await other.drop();
  });
  beforeEach(async () => {
    for (const grant of grants) await asSuperuser(test, grant);
  });

  const asRole = async (work: (database: Database) => Promise<void>): Promise<void> => {
    const database = await openDatabase(url, { fills: 2 });
    try {
      await work(database);
    } finally {
      await database.close();
    }
  };

  it('are enough for all that a worker does', () => asRole(live));

  it('are all needed: without any one of them something fails as PermissionDenied', async () => {
    const needless: string[] = [];
    const all = grants.flatMap(atoms);
    assert.ok(all.length > 20);
    for (const { privilege, object } of all) {
      await asSuperuser(test, `REVOKE ${privilege} ON ${object} FROM ${role}`);
      try {
        await asRole(live);
        needless.push(`${privilege} ON ${object}`);
      } catch (error) {
        assert.match(
          error instanceof Error ? error.message : '',
          /42501|permission denied/i,
          `without ${privilege} ON ${object}`,
        );
      }
      await asSuperuser(test, `GRANT ${privilege} ON ${object} TO ${role}`);
    }
    assert.deepEqual(needless, []);
  });

  it('hold TEMP where a pipeline has skipUnchanged, which needs it, and only there', async () => {
    const skipping = { ...query, skipUnchanged: true };
    const more = grantsFor(role, test.name, [query, skipping]).filter((grant) => !grants.includes(grant));
    assert.deepEqual(more, [`GRANT TEMP ON DATABASE "${test.name}" TO "${role}";`]);
    const filled = (): Promise<void> =>
      asRole(async (database) => {
        const request = () => fillRequest(skipping, { run: randomUUID() });
        await fill(database, request());
        assert.equal((await fill(database, request())).unchanged, true);
      });
    await assert.rejects(filled(), /GRANT TEMPORARY ON DATABASE/);
    for (const grant of more) await asSuperuser(test, grant);
    try {
      await filled();
    } finally {
      await asSuperuser(test, `REVOKE TEMP ON DATABASE ${test.name} FROM ${role}`);
    }
  });

  it('name the role and the objects whatever their names', () => {
    const hostile = grantsFor('a"b', 'c"d', [query]);
    assert.ok(hostile.every((grant) => grant.endsWith(' TO "a""b";')));
    assert.match(hostile[0] ?? '', /ON DATABASE "c""d" TO/);
    assert.equal(new Set(grantsFor('r', 'd', [query, code])).size, grantsFor('r', 'd', [query, code]).length);
  });

  for (const sql of [
    'TRUNCATE shop."Sales"',
    'UPDATE shop."Sales" SET n = 1',
    'ALTER TABLE shop."Sales" ADD COLUMN x int',
    'DELETE FROM repave.fill',
    'UPDATE repave.fill SET rows_inserted = 0',
    'TRUNCATE repave.fill',
    'DELETE FROM repave.failure',
    'UPDATE repave.failure SET message = $$$$',
    'DELETE FROM repave.notice',
    'DELETE FROM repave.partition',
    'DELETE FROM repave.pipeline',
    'DELETE FROM repave.backfill',
    'DELETE FROM repave.run_key',
    'UPDATE repave.ledger SET id = gen_random_uuid()',
    'INSERT INTO repave.migration VALUES (999, $$x$$)',
    'DROP TABLE repave.fill',
    'CREATE TABLE repave.mine (n int)',
    'CREATE SCHEMA mine',
    'CREATE TEMP TABLE mine (n int)',
    `COPY shop."Sales" FROM PROGRAM 'true'`,
    `COPY shop."Sales" TO '/tmp/mine'`,
    `SELECT pg_read_file('/etc/hostname')`,
  ]) {
    it(`do not allow ${sql.slice(0, 50)}`, async () => {
      await withClient(url, async (client) => {
        await assert.rejects(
          client.query(sql),
          (error) => error instanceof Error && 'code' in error && error.code === '42501',
        );
      });
    });
  }
});
