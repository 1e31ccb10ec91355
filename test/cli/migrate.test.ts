import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { SEARCH_ATTRIBUTES } from '../../src/contract.js';
import { createNamespace } from '../e2e/temporal-cli.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { withClient } from '../support/template.js';
import { testTemporal } from '../support/temporal.js';
import { document, makeProject, repave, SALES, SALES_SUMMARY } from './repave.js';

interface MigrateDocument {
  readonly ledger: string;
  readonly pending: readonly string[];
  readonly applied: readonly string[];
  readonly grants: readonly string[];
  readonly notes: readonly string[];
  readonly granted: boolean;
  readonly refused: readonly { readonly grant: string }[];
  readonly searchAttributes?: unknown;
}

describe('repave migrate', function () {
  this.timeout(600_000);
  let project: string;
  let database: TestDatabase;
  /** A role that has nothing yet. */
  const role = `test_role_${randomBytes(8).toString('hex')}`;

  before(async () => {
    project = makeProject({
      'pipelines/sales_summary.sql': SALES_SUMMARY,
      'pipelines/parts.sql': SALES_SUMMARY.replace('-- target: sales_summary\n', '-- target: parts\n-- create: true\n'),
    });
    database = await createTestDatabase({ ledger: false });
    await withClient(database.superuserUrl, (superuser) => superuser.query(`CREATE ROLE ${role}`));
  });
  after(async () => {
    await withClient(database.superuserUrl, (superuser) => superuser.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`));
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  const schemas = (): Promise<unknown[]> => database.sql(`SELECT FROM pg_namespace WHERE nspname = 'repave'`);
  const run = (words: readonly string[], url = database.ownerUrl) =>
    repave(project, ['migrate', ...words], {
      REPAVE_MIGRATE_URL: url,
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/nowhere',
    });

  it('says with --dry-run what it would do, as SQL, and does nothing', async () => {
    const { code, stdout, stderr } = await run(['--dry-run']);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /would be applied[^]*CREATE TABLE repave\.fill/);
    assert.deepEqual(await schemas(), []);
  });

  it('refuses a role that may not, and says so', async () => {
    const ended = await run(['--json'], database.url);
    assert.equal(ended.code, 2, ended.stderr);
    assert.equal(document<{ error: { type: string } }>(ended).error.type, 'PermissionDenied');
  });

  it('makes the ledger, and nothing when it runs again', async () => {
    const first = document<MigrateDocument>(await run(['--json']));
    assert.equal(first.ledger, 'missing');
    assert.ok(first.applied.length > 0);
    assert.equal((await schemas()).length, 1);
    const second = document<MigrateDocument>(await run(['--json']));
    assert.deepEqual([second.ledger, second.applied], ['current', []]);
  });

  it('prints the grants of a role, and gives those that can be given', async () => {
    const printed = await run(['--role', role]);
    assert.equal(printed.code, 0, printed.stderr);
    assert.match(printed.stdout, new RegExp(`GRANT SELECT, INSERT, DELETE ON "sales_summary" TO "${role}";`));

    assert.match(
      printed.stdout,
      new RegExp(
        `\\n-- parts has create: true, so "${role}" must own "parts" or be a member of its owner .*GRANT its owner TO "${role}"`,
      ),
    );
    assert.match(printed.stdout, new RegExp(`\\n-- What the queries read is yours to grant.*TO "${role}"\\.\\n`));
    const lines = printed.stdout.split('\n').filter((line) => line !== '' && !/^-- |^GRANT .*;$/.test(line));
    assert.deepEqual(lines, ['The ledger is up to date.'], 'the rest is SQL as it stands');

    const early = await run(['--role', role, '--apply-grants', '--json']);
    assert.equal(early.code, 1, 'the target is not there yet');
    assert.deepEqual(
      document<MigrateDocument>(early).refused.map(({ grant }) => grant),
      ['parts', 'sales_summary'].map((target) => `GRANT SELECT, INSERT, DELETE ON "${target}" TO "${role}";`),
    );

    await database.sql(`${SALES}; CREATE TABLE parts (sale_date date)`);
    const applied = await run(['--role', role, '--apply-grants', '--json']);
    assert.equal(applied.code, 0, applied.stderr);
    assert.equal(document<MigrateDocument>(applied).notes.length, 2);
    const [privileges] = await database.sql(
      `SELECT has_table_privilege($1, 'repave.fill', 'INSERT') AS fill, has_table_privilege($1, 'sales_summary', 'DELETE') AS target,
              has_table_privilege($1, 'repave.fill', 'DELETE') AS rewrite`,
      [role],
    );
    assert.deepEqual(privileges, { fill: true, target: true, rewrite: false });
  });

  it('registers the search attributes of the namespace that is named, once', async () => {
    const { address } = await testTemporal();
    const namespace = await createNamespace();
    const named = ['--address', address, '--namespace', namespace];
    const state = async (words: readonly string[]): Promise<unknown> =>
      document<MigrateDocument>(await run([...named, '--json', ...words])).searchAttributes;
    const names = Object.values(SEARCH_ATTRIBUTES);
    assert.equal(await state(['--no-temporal']), undefined);
    assert.deepEqual(await state(['--dry-run']), {
      added: [],
      now: { state: 'incomplete', missing: names, otherType: [] },
    });
    const added = await run(named);
    assert.equal(added.code, 0, added.stderr);
    assert.match(added.stderr, /added: RepavePipeline, RepaveKey, RepaveBackfill\./);
    assert.deepEqual(await state([]), { added: [], now: { state: 'there' } });
  });

  it('says which server or namespace did not let it, and how to do it by hand; the ledger is made all the same', async () => {
    const { address } = await testTemporal();
    const byHand = 'temporal operator search-attribute create --name RepavePipeline --type Keyword';
    for (const [words, says] of [
      [[], /no Temporal server is named/],
      [['--address', '127.0.0.1:1'], /No Temporal server answers at 127\.0\.0\.1:1/],
      [['--address', address, '--namespace', 'no-such-namespace'], /no-such-namespace is not found/],
    ] as const) {
      const { code, stdout, stderr } = await run(words);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /The ledger is up to date/);
      const [line, ...others] = stderr.trimEnd().split('\n');
      assert.deepEqual(others, []);
      assert.match(line ?? '', says);
      assert.ok(line?.includes(byHand), line);
    }
  });

  it('refuses a ledger that a later version made', async () => {
    await database.sql(`INSERT INTO repave.migration (number, name) VALUES (999999, 'from the future')`);
    const ended = await run(['--json']);
    assert.equal(ended.code, 2, ended.stderr);
    assert.match(document<{ error: { message: string } }>(ended).error.message, /newer/);
  });
});
