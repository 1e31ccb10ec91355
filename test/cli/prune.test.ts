import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { until } from '../support/fill.js';
import { asSuperuser } from '../support/superuser.js';
import { withClient } from '../support/template.js';
import { document, makeProject, repave, startRepave } from './repave.js';

interface PruneDocument {
  readonly keep: string;
  readonly dryRun: boolean;
  readonly rows: number;
  readonly tables: readonly { readonly table: string; readonly rows: number; readonly bytes: number }[];
  readonly warnings: readonly string[];
  readonly error?: { readonly type: string; readonly message: string };
}

const pipeline = (target: string, more = ''): string => `-- repave
-- target: ${target}
-- partition: { column: day, by: day }
${more}SELECT :date AS day
`;

describe('repave prune', function () {
  this.timeout(600_000);
  let project: string;
  let database: TestDatabase;

  before(async () => {
    project = makeProject({ 'pipelines/daily.sql': pipeline('daily') });
    database = await createTestDatabase();
    await asSuperuser(database, `REVOKE DELETE ON repave.fill FROM ${database.workerRole}`);
  });
  after(async () => {
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });
  beforeEach(async () => {
    await database.sql('TRUNCATE repave.fill, repave.pipeline');
    await database.sql(
      `INSERT INTO repave.fill (pipeline, key, window_start, window_end, run, activity, attempt, fence, fingerprint,
                                rows_deleted, rows_inserted, seconds, checks, warnings, filled_at)
       SELECT 'daily', 'k' || k, now(), now(), 'run' || r, '1', 1, r, 'v1:x', 0, 1, 0.1, '[]', '{}', now() - (101 - r) * interval '1 day'
         FROM generate_series(1, 2) r, generate_series(1, 300) k`,
    );
  });

  const run = (words: readonly string[], url = database.ownerUrl, folder = project) =>
    repave(folder, ['prune', ...words], {
      REPAVE_MIGRATE_URL: url,
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nowhere',
    });
  const left = async (): Promise<number> => (await database.sql('SELECT FROM repave.fill')).length;

  it('says with --dry-run what would go, by table, and removes it without', async () => {
    const dry = await run(['--dry-run', '--json']);
    assert.equal(dry.code, 0, dry.stderr);
    const { tables, ...said } = document<PruneDocument>(dry);
    assert.deepEqual([said.keep, said.dryRun, said.rows, said.warnings], ['90d', true, 300, []]);
    assert.deepEqual(
      tables.map(({ table, rows }) => [table, rows]),
      ['run_key', 'claim', 'fill', 'failure', 'notice', 'backfill'].map((table) => [
        `repave.${table}`,
        table === 'fill' ? 300 : 0,
      ]),
    );
    assert.ok((tables.find(({ table }) => table === 'repave.fill')?.bytes ?? 0) > 300 * 50);
    assert.equal(await left(), 600);

    const done = await run([]);
    assert.equal(done.code, 0, done.stderr);
    assert.match(done.stdout, /^table\tremoved\tsize$/m);
    assert.match(done.stdout, /^repave\.fill\t300\t\d+\.\d kB$/m);
    assert.match(done.stderr, /300 rows removed: lists of runs that have ended, and what was over for more than 90d\./);
    assert.equal(await left(), 300);
  });

  it('keeps for as long as it is told, at least a day', async () => {
    const kept = await run(['--keep', '101d', '--json']);
    assert.deepEqual([kept.code, document<PruneDocument>(kept).rows], [0, 0]);
    for (const keep of ['23h', '90']) {
      const refused = await run([`--keep=${keep}`, '--json']);
      assert.equal(refused.code, 2, keep);
      const { error } = document<PruneDocument>(refused);
      assert.ok(error?.type === 'InvalidInput' && error.message.includes(JSON.stringify(keep)), error?.message);
      assert.match(error.message, /at least 1d/);
    }
    assert.equal(await left(), 600);
  });

  it('refuses to keep for less than a run may look for its fill, and says what is not known', async () => {
    const patient = makeProject({
      'pipelines/daily.sql': pipeline('daily'),
      'pipelines/patient.sql': pipeline('patient', '-- retry: { giveUpAfter: 3d }\n'),
      'pipelines/elsewhere.sql': pipeline('elsewhere', '-- database: OTHER_URL\n-- retry: { giveUpAfter: 30d }\n'),
    });
    try {
      const refused = await run(['--keep', '5d', '--json'], undefined, patient);
      assert.equal(refused.code, 2);
      assert.match(document<PruneDocument>(refused).error?.message ?? '', /patient has giveUpAfter 72 h.*at least 6d/);
      assert.equal((await run(['--keep', '6d'], undefined, patient)).code, 0);
    } finally {
      rmSync(patient, { recursive: true, force: true });
    }
    await database.sql(
      `INSERT INTO repave.pipeline (name, target, partition_column, by, zone, fingerprint)
       SELECT name, name, 'day', 'day', 'UTC', 'v1:x' FROM unnest(ARRAY['daily', 'stranger']) name`,
    );
    const warned = await run(['--json']);
    assert.equal(warned.code, 0, warned.stderr);
    const { warnings } = document<PruneDocument>(warned);
    assert.equal(warnings.length, 1);
    assert.match(warnings[0] ?? '', /files of stranger are not here.*less than 90d/);
  });

  it('is refused to a role that workers log in as, with what to set', async () => {
    const ended = await run(['--json'], database.url);
    assert.equal(ended.code, 2);
    const { error } = document<PruneDocument>(ended);
    assert.equal(error?.type, 'PermissionDenied');
    assert.match(error.message, /repave\.fill\. Set REPAVE_MIGRATE_URL/);
    assert.equal((await run(['--dry-run'], database.url)).code, 0);
  });

  it('ends between two pages at Ctrl-C, and says what it has done', async () => {
    await withClient(database.ownerUrl, async (holder) => {
      await holder.query('BEGIN; SELECT FROM repave.fill FOR UPDATE');
      const running = startRepave(project, ['prune', '--json'], { REPAVE_MIGRATE_URL: database.ownerUrl });
      await until('its page waits for the rows that are held', async () => {
        const waiting = await database.sql(
          `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%DELETE FROM repave.fill%'`,
        );
        return waiting.length > 0;
      });
      running.process.kill('SIGINT');
      await holder.query('COMMIT');
      const ended = await running.ended;
      assert.equal(ended.code, 130, ended.stderr);
      const { rows, error } = document<PruneDocument>(ended);
      assert.deepEqual([rows, error?.type], [300, 'Interrupted']);
      assert.match(error?.message ?? '', /Run it again/);
      assert.equal(await left(), 300);
    });
  });
});
