import assert from 'node:assert/strict';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type { PartitionHandle } from '../../src/client.js';
import type { WorkerProcess } from '../support/worker.js';
import { Installation, type OpenFill } from './installation.js';
import { until } from './until.js';

const KEY = '2024-03-01';
/** The day that the thawed worker fills, to show that it is awake again. */
const LATER = '2024-03-02';
/** More than the buffers between a worker and its server hold. */
const COPIED_ROWS = 200_000;

/** Each is frozen at another point of its fill. */
const PIPELINES = {
  zombie_query: `-- repave
-- target: zombie_query
-- partition: { column: day, by: day }
SELECT day, version FROM held('query') CROSS JOIN source WHERE day >= :date AND day < :end_date
`,
  zombie_guard: `-- repave
-- target: zombie_guard
-- partition: { column: day, by: day }
SELECT day, version FROM source WHERE day >= :date AND day < :end_date
`,
  zombie_copy: typescript('zombie_copy', COPIED_ROWS),
  zombie_spool: typescript('zombie_spool', 10),
  zombie_stale: typescript('zombie_stale', 10),
};
type Name = keyof typeof PIPELINES;
const NAMES = Object.keys(PIPELINES) as Name[];

/** Yields rows with the version of the moment, having waited before the first while a file of its worker's name is there. */
function typescript(name: string, rows: number): string {
  return `
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { definePipeline } from 'repave';
const { REPAVE_PROJECT = '', WORKER = '' } = process.env;
export default definePipeline({
  target: '${name}',
  partition: { column: 'day', by: 'day' },
  async *rows({ key }) {
    const version = Number(readFileSync(join(REPAVE_PROJECT, 'version'), 'utf8'));
    writeFileSync(join(REPAVE_PROJECT, '${name} reads on ' + WORKER), '');
    while (existsSync(join(REPAVE_PROJECT, '${name} waits on ' + WORKER))) await new Promise((go) => setTimeout(go, 20));
    for (let i = 0; i < ${rows}; i++) yield { day: key, version, filler: 'x'.repeat(100) };
  },
});
`;
}

const TABLES = `
  CREATE TABLE source (day date NOT NULL, version int NOT NULL);
  INSERT INTO source SELECT day, 1 FROM generate_series(date '${KEY}', '${LATER}', '1 day') AS day, generate_series(1, 10);
  ${NAMES.map((name) => `CREATE TABLE ${name} (day date NOT NULL, version int NOT NULL, filler text);`).join('\n')}
  CREATE FUNCTION hold_statement() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM held(TG_ARGV[0]); RETURN NULL; END';
  CREATE TRIGGER hold BEFORE INSERT ON zombie_copy FOR EACH STATEMENT EXECUTE FUNCTION hold_statement('copy');
  -- The guard is the last statement before COMMIT.
  CREATE FUNCTION hold_guard() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN IF NEW.pipeline = ''zombie_guard'' THEN PERFORM held(''guard''); END IF; RETURN NULL; END';
  CREATE TRIGGER hold AFTER INSERT ON repave.fill FOR EACH ROW EXECUTE FUNCTION hold_guard();`;

describe('a worker that is frozen in the middle of its fills, and thaws after another has done them', function () {
  this.timeout(600_000);
  let installation: Installation;
  let first: WorkerProcess;
  let second: WorkerProcess;
  let frozen: readonly OpenFill[];
  const handles = new Map<Name, PartitionHandle>();

  before(async () => {
    const files = Object.entries(PIPELINES).map(([name, text]) => [
      `${name}.${text.startsWith('--') ? 'sql' : 'ts'}`,
      text,
    ]);
    installation = await Installation.open({ pipelines: Object.fromEntries(files), tables: TABLES });
    sets('version', '1');
    for (const point of ['query', 'guard', 'copy']) await installation.hold(point);
    for (const name of ['zombie_spool', 'zombie_stale']) sets(`${name} waits on first`);
    sets('zombie_stale waits on second');

    // As many slots as fills: frozen, it has no poll open that would take a task from the second.
    first = await installation.startWorker({ env: { WORKER: 'first', REPAVE_FILLS: String(NAMES.length) } });
    for (const name of NAMES) handles.set(name, await installation.client.partition({ pipeline: name, key: KEY }));
    frozen = await installation.heldFills(3);
    for (const name of ['zombie_spool', 'zombie_stale']) await appears(`${name} reads on first`);

    first.signal('SIGSTOP');
    sets('version', '2');
    await installation.database.sql('UPDATE source SET version = 2');
    await installation.release('copy');
    await installation.release('guard');
  });
  after(() => installation.close());

  it('stands in its query, in the middle of a COPY, and between the guard and COMMIT', async () => {
    const expected = [
      'zombie_copy: active, ClientRead',
      'zombie_guard: idle in transaction, ClientRead',
      'zombie_query: active, PgSleep',
    ];
    await until(`fills that stand at ${expected.join('; ')}`, async () => {
      const open = (await installation.openFills()).filter(({ pid }) => frozen.some((fill) => fill.pid === pid));
      return isDeepStrictEqual(
        open.map(({ pipeline, state, wait }) => `${pipeline}: ${state}, ${wait}`),
        expected,
      );
    });
  });

  it('does not hold up the second attempts', async () => {
    // Not before: it ends what the first has open as soon as Temporal gives it that.
    second = await installation.startWorker({ env: { WORKER: 'second' } });
    await until('the second attempt to be in its query', async () => {
      const [fill] = await installation.heldFills(1, 'zombie_query');
      return !frozen.some(({ pid }) => pid === fill?.pid);
    });
    await installation.release('query');
    for (const name of NAMES) {
      if (name === 'zombie_stale') await appears('zombie_stale reads on second');
      else await until(`the fill of ${name}`, async () => (await entries(name)).length > 0);
    }
  });

  it('is refused once it thaws while the second attempt still runs', async () => {
    removes('zombie_stale waits on first');
    first.signal('SIGCONT');
    // Whichever comes first: the database's refusal, or Temporal's word that the attempt is over.
    await until('the end of the first attempt in the log', async () =>
      first
        .log()
        .split('\n')
        .some((line) => line.includes('zombie_stale') && /StaleAttempt|Activity completed as cancelled/.test(line)),
    );
    assert.deepEqual(await entries('zombie_stale'), []);
    assert.deepEqual(await versions('zombie_stale'), []);
    removes('zombie_stale waits on second');
    for (const [name, handle] of handles) assert.equal((await handle.result()).rows, rowsOf(name));
  });

  it('writes nothing more though it goes on where it stood, and fills again', async () => {
    assert.equal(await second.stop(), 0);
    const before = await everything();
    removes('zombie_spool waits on first');
    const { client } = installation;
    // By the only worker now.
    const later = NAMES.map(async (pipeline) => (await client.partition({ pipeline, key: LATER })).result());
    assert.deepEqual(
      (await Promise.all(later)).map(({ rows }) => rows),
      NAMES.map(rowsOf),
    );
    assert.deepEqual(await everything(), before);
    // What the first attempts still did when they were refused may end a moment after the new fills.
    await until('nothing to be left behind', async () => (await installation.leftBehind()).length === 0);
  });

  for (const name of NAMES) {
    it(`leaves the second attempt's rows and one record of them: ${name}`, async () => {
      const [entry, ...more] = await entries(name);
      assert.deepEqual(more, []);
      assert.ok(entry && entry.attempt > 1 && entry.rows === rowsOf(name), JSON.stringify(entry));
      assert.deepEqual(
        await installation.database.sql(
          'SELECT attempt, fence::float8 AS fence, rows::int AS rows FROM repave.partition WHERE pipeline = $1 AND key = $2',
          [name, KEY],
        ),
        [entry],
      );
      assert.deepEqual(await versions(name), [{ version: 2, rows: rowsOf(name) }]);
    });
  }

  const entries = (name: Name) =>
    installation.database.sql<{ attempt: number; fence: number; rows: number }>(
      'SELECT attempt, fence::float8 AS fence, rows_inserted::int AS rows FROM repave.fill WHERE pipeline = $1 AND key = $2',
      [name, KEY],
    );
  const versions = (name: Name) =>
    installation.database.sql(
      `SELECT version, count(*)::int AS rows FROM ${name} WHERE day = $1 GROUP BY 1 ORDER BY 1`,
      [KEY],
    );
  const everything = async () => Promise.all(NAMES.map(async (name) => [await entries(name), await versions(name)]));
  const rowsOf = (name: Name): number => (name === 'zombie_copy' ? COPIED_ROWS : 10);

  const path = (file: string): string => join(installation.project, file);
  const sets = (file: string, text = ''): void => writeFileSync(path(file), text);
  const removes = (file: string): void => rmSync(path(file));
  const appears = (file: string): Promise<boolean> => until(file, async () => existsSync(path(file)));
});
