import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readlinkSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Row } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import type { FillStep } from '../../src/warehouse/fill-request.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, openFills, typescriptPipeline, until, withWorker } from '../support/fill.js';
import { type FillingProcess, startFilling } from '../support/filling.js';
import { asSuperuser } from '../support/superuser.js';

describe('the rows of a TypeScript source', () => {
  let test: TestDatabase;
  let spoolDir: string;
  const children: FillingProcess[] = [];

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    spoolDir = mkdtempSync(join(tmpdir(), 'repave-spool-'));
    await test.sql(
      `CREATE TABLE target (day date NOT NULL, n int, note text); INSERT INTO target VALUES ('${KEY}', -1, 'old')`,
    );
  });
  afterEach(async () => {
    for (const { process: child } of children.splice(0)) child.kill('SIGKILL');
    rmSync(spoolDir, { recursive: true });
  });

  /** More than the spool keeps in memory. */
  const many = function* (key: string, count = 5_000): Generator<Row> {
    for (let n = 0; n < count; n++) yield { day: key, n, note: 'x'.repeat(200) };
  };
  const files = () => readdirSync(spoolDir);
  /** Files of the folder that a process holds open although they have no name. */
  const nameless = (pid: number): number | undefined =>
    process.platform === 'linux'
      ? readdirSync(`/proc/${pid}/fd`).filter((fd) => linkOf(`/proc/${pid}/fd/${fd}`).startsWith(`${spoolDir}/`)).length
      : undefined;

  it('stall without a session in a transaction, a lock or a snapshot', async () => {
    let stalled = 0;
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(async function* ({ key }) {
        yield { day: key, n: 1, note: 'a' };
        // A session that is idle may be at work for the server itself just then: it takes in what others have changed.
        const open = await until('the worker’s sessions hold nothing', async () => {
          const sessions = await asSuperuser<{ nothing: boolean }>(
            test,
            `SELECT state = 'idle' AND backend_xid IS NULL AND backend_xmin IS NULL
                    AND NOT EXISTS (SELECT FROM pg_locks l WHERE l.pid = a.pid) AS nothing
               FROM pg_stat_activity a WHERE datname = current_database() AND usename = $1`,
            [test.workerRole],
          );
          return sessions.every(({ nothing }) => nothing) && sessions;
        });
        stalled += 1;
        assert.ok(open.length > 0, 'the worker has connections');
        assert.equal(await openFills(test), 0);
        // The window is free for others meanwhile.
        await test.sql('BEGIN; LOCK TABLE target IN ACCESS EXCLUSIVE MODE NOWAIT; ROLLBACK');
      });
      assert.equal((await fill(database, fillRequest(pipeline))).rows, 1);
    });
    assert.equal(stalled, 1);
  });

  it('leave no file: during, after success, after failures and after a cancel', async () => {
    await withWorker(
      test,
      async (database) => {
        const seen: (number | undefined)[] = [];
        const watching = typescriptPipeline(function* ({ key }) {
          yield* many(key);
          seen.push(files().length, nameless(process.pid));
        });
        await fill(
          database,
          fillRequest(watching, { onStep: (step) => void (step === 'lock' && seen.push(files().length)) }),
        );
        assert.deepEqual(
          seen,
          [0, process.platform === 'linux' ? 1 : undefined, 0],
          'there is a spool, and it has no name',
        );
        assert.deepEqual(files(), []);
        assert.ok(!nameless(process.pid), 'and its space was given back');

        const throwing = typescriptPipeline(function* ({ key }) {
          yield* many(key);
          throw new Error('gone');
        });
        await failsAs(fill(database, fillRequest(throwing)), 'SourceFailed');
        const unfit = typescriptPipeline(function* ({ key }) {
          yield* many(key);
          yield { day: key, n: 'no number', note: null };
        });
        await failsAs(fill(database, fillRequest(unfit)), 'DataError');
        const outside = typescriptPipeline(() => many('2024-03-01'));
        await failsAs(fill(database, fillRequest(outside)), 'RowsOutsideWindow');

        for (const when of ['spool', 'insert'] as const) {
          const cancel = new AbortController();
          const reason = new Error('cancelled');
          const stalling = typescriptPipeline(async function* ({ key, signal }) {
            yield* many(key);
            if (when !== 'spool') return;
            cancel.abort(reason);
            await once(signal, 'abort');
            await new Promise(() => undefined);
          });
          const onStep = (step: FillStep): void => {
            if (step === when && when === 'insert') cancel.abort(reason);
          };
          await assert.rejects(
            fill(database, fillRequest(stalling, { signal: cancel.signal, onStep })),
            (error) => error === reason,
          );
        }
        assert.deepEqual(files(), []);
        assert.ok(!nameless(process.pid));
      },
      { spoolDir },
    );
    assert.equal((await fills(test)).length, 1);
  });

  it('leave no file where the process is killed', async () => {
    const child = stallingFill();
    await child.line(/^given 5000$/);
    assert.notEqual(nameless(child.pid), 0, 'there is a spool');
    assert.deepEqual(files(), []);
    child.process.kill('SIGKILL');
    await once(child.process, 'exit');
    assert.deepEqual(files(), []);
    await until('the killed process has no session', async () => (await sessions()) === 0);
    assert.deepEqual(await test.sql('SELECT n FROM target'), [{ n: -1 }]);
  });

  it('are written to a file that no one else may read', async () => {
    if (process.platform !== 'linux') return;
    const { statSync } = await import('node:fs');
    const child = stallingFill();
    await child.line(/^given/);
    const fds = readdirSync(`/proc/${child.pid}/fd`).map((fd) => `/proc/${child.pid}/fd/${fd}`);
    const [file] = fds.filter((fd) => linkOf(fd).startsWith(`${spoolDir}/`));
    assert.ok(file);
    assert.equal(statSync(file).mode & 0o777, 0o600);
  });

  it('a folder that is not there fails before the source is asked', async () => {
    await withWorker(
      test,
      async (database) => {
        const pipeline = typescriptPipeline(() => assert.fail('asked for rows'));
        const failure = await failsAs(fill(database, fillRequest(pipeline)), 'Unexpected');
        assert.match(failure.message, /ENOENT.*REPAVE_SPOOL_DIR/);
      },
      { spoolDir: join(spoolDir, 'nowhere') },
    );
  });

  function stallingFill(): FillingProcess {
    const child = startFilling({ url: test.url, rows: [5_000], spoolDir, stalls: true });
    children.push(child);
    return child;
  }

  async function sessions(): Promise<number> {
    const [row] = await test.sql<{ open: number }>(
      'SELECT count(*)::int AS open FROM pg_stat_activity WHERE datname = current_database() AND usename = $1',
      [test.workerRole],
    );
    return row?.open ?? -1;
  }
});

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return '';
  }
}
