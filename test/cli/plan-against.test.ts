import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { comparePlan } from '../../src/cli/plan-against.js';
import { showPlan } from '../../src/cli/plan.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { keptContext } from './plan-context.js';
import { inShell, makeProject, SALES, SALES_SUMMARY } from './repave.js';

const ASKED = { pipeline: 'sales_summary', from: '1997-01-01', to: '1997-01-05' } as const;

describe('repave plan --against', () => {
  let project: string;
  let database: TestDatabase;
  let env: Record<string, string>;
  let file: string;

  before(async () => {
    project = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY, 'pipelines/other.sql': SALES_SUMMARY });
    file = join(project, 'kept.json');
    database = await createTestDatabase();
    await database.sql(SALES);
    env = { DATABASE_URL: database.url };
    writeFileSync(file, await kept());
  });
  after(async () => {
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  const kept = async (): Promise<string> => {
    const context = keptContext(project, env, { json: true });
    await showPlan(context, { ...ASKED, only: ['missing', 'failed'] });
    return context.stdout();
  };
  const compared = async (asked: object = {}, options: { json?: boolean; isTTY?: boolean; all?: boolean } = {}) => {
    const context = keptContext(project, env, options);
    const code = await comparePlan(context, { pipeline: 'sales_summary', ...asked }, file, options);
    return { code, stdout: context.stdout(), stderr: context.stderr() };
  };

  it('exits with 0 where it is the same, and asks for what the kept one asked for', async () => {
    const { code, stdout, stderr } = await compared();
    assert.deepEqual([code, stdout], [0, '']);
    assert.match(stderr, /The plan is the same: 5 partitions \(5 missing\)\./);
  });

  it('exits with 1 and names what came, went and changed, and the query where it did', async () => {
    await database.sql(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
       VALUES ('sales_summary', '1997-01-02', 'filled', 1, 'v1:x', now(), 'r', 1, 1), ('sales_summary', '1997-01-03', 'failed', NULL, NULL, NULL, 'r', 1, 2)`,
    );
    try {
      const asked = { from: '1997-01-01', to: '1997-01-06', only: ['missing', 'failed'] };
      const people = await compared(asked);
      assert.equal(people.code, 1);
      assert.deepEqual(people.stdout.trimEnd().split('\n'), [
        '- 1997-01-02  missing',
        '~ 1997-01-03  missing → failed',
        '+ 1997-01-06  missing',
      ]);
      assert.match(
        people.stderr,
        /Then: 5 partitions \(5 missing\); now: 5 partitions \(1 failed, 4 missing\)\. The query is the same\./,
      );
      writeFileSync(join(project, 'pipelines/sales_summary.sql'), SALES_SUMMARY.replace('count(*)', 'count(*) + 1'));
      const programs = await compared(asked, { json: true });
      const { version, then, now, ...difference } = JSON.parse(programs.stdout) as Record<string, unknown>;
      assert.deepEqual(difference, {
        pipeline: 'sales_summary',
        same: false,
        queryChanged: true,
        came: [{ key: '1997-01-06', reason: 'missing' }],
        went: [{ key: '1997-01-02', reason: 'missing' }],
        changed: [{ key: '1997-01-03', from: 'missing', to: 'failed' }],
        notes: [],
      });
      assert.equal(version, 1);
      assert.notEqual((then as { id: string }).id, (now as { id: string }).id);
      assert.match((await compared(asked)).stderr, /The query changed\./);
    } finally {
      writeFileSync(join(project, 'pipelines/sales_summary.sql'), SALES_SUMMARY);
      await database.sql('DELETE FROM repave.partition');
    }
  });

  it('shows 100 on a terminal, and says how many more there are', async () => {
    const asked = { from: '1997-01-06', to: '1997-09-30' };
    const { stdout } = await compared(asked, { isTTY: true });
    const lines = stdout.trimEnd().split('\n');
    assert.deepEqual([lines.length, lines.at(-1)], [101, 'and 173 more: --all']);
    assert.equal((await compared(asked, { isTTY: true, all: true })).stdout.trimEnd().split('\n').length, 273);
  });

  it('reads standard input, as the command', async () => {
    const line = `DATABASE_URL='${database.url}'; export DATABASE_URL; "$@" plan sales_summary --against - < kept.json`;
    const { code, stderr } = await inShell(project, line, []);
    assert.equal(code, 0, stderr);
    assert.match(stderr, /The plan is the same/);
  });

  describe('says what is wrong with', () => {
    const refused = async (content: string | undefined, message: RegExp, pipeline = 'sales_summary'): Promise<void> => {
      const other = join(project, content === undefined ? 'nowhere.json' : 'other.json');
      if (content !== undefined) writeFileSync(other, content);
      await assert.rejects(comparePlan(keptContext(project, env), { pipeline }, other, {}), (error: Error) => {
        assert.equal((error as { type?: string }).type, 'InvalidInput');
        assert.match(error.message, message);
        return true;
      });
    };
    const changed = async (change: (plan: Record<string, unknown>) => object): Promise<string> =>
      JSON.stringify(change(JSON.parse(await kept()) as Record<string, unknown>));

    it('a file that is not there', () => refused(undefined, /There is no file .*nowhere\.json: expected a plan kept/));
    it('a file that is no JSON, or cut', async () => {
      await refused('key,reason\n', /is no kept plan \(it is no JSON document, or not a whole one\)/);
      await refused((await kept()).slice(0, -20), /not a whole one/);
      await refused('[]', /it has no partitions/);
      await refused('null', /it has no partitions/);
    });
    it('a plan without an id', async () =>
      refused(await changed(({ id: _, ...plan }) => plan), /it has not all of a plan’s fields/));
    it('a plan that was changed since', async () => {
      await refused(
        await changed((plan) => ({ ...plan, partitions: [] })),
        /its partitions are not those of its id, so it was changed since/,
      );
      await refused(
        await changed((plan) => ({ ...plan, partitions: [{ key: '1997-01-01', reason: 'lost' }] })),
        /a partition of it has no key or no reason/,
      );
    });
    it('a plan of another pipeline', async () =>
      refused(await kept(), /has a plan of sales_summary: expected one of other\./, 'other'));
    it('flags that mean nothing beside it', () =>
      assert.rejects(
        comparePlan(keptContext(project, env), { pipeline: 'sales_summary' }, file, { csv: true }),
        /--against and --csv are given/,
      ));
  });
});
