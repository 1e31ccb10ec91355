import assert from 'node:assert/strict';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import type { Row } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import type { FillStep } from '../../src/warehouse/fill-request.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import {
  failsAs,
  fillRequest,
  fills,
  KEY,
  openFills,
  typescriptPipeline,
  until,
  within,
  withWorker,
} from '../support/fill.js';
import { type FillingProcess, startFilling } from '../support/filling.js';
import { untilLetGo } from '../support/lock-waits.js';
import { LOOK } from '../support/looks.js';
import { type Statement, type StatementKind, withStatements } from '../support/statements.js';
import { asSuperuser } from '../support/superuser.js';
import { withClient } from '../support/template.js';

const STRAIGHT = { stage: false } as const;
/** More than lies between the source and the server: the first of them are with the server when the last are asked for. */
const MANY = 5_000;

describe('the rows of a source with `stage: false`', () => {
  let test: TestDatabase;
  const children: FillingProcess[] = [];

  before(async () => {
    test = await createTestDatabase();
  });
  after(() => test.drop());
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(
      `CREATE TABLE target (day date NOT NULL, n int, note text); INSERT INTO target VALUES ('${KEY}', -1, 'old')`,
    );
  });
  afterEach(() => {
    for (const { process: child } of children.splice(0)) child.kill('SIGKILL');
  });

  const many = function* (key: string, count = MANY): Generator<Row> {
    for (let n = 0; n < count; n++) yield { day: key, n, note: 'x'.repeat(200) };
  };
  const standing = () => test.sql('SELECT count(*)::int AS rows, min(n) AS first FROM target');
  const OLD = [{ rows: 1, first: -1 }];
  /** What the one open fill does, as the server sees it. */
  const doing = async () => {
    const [row] = await asSuperuser<{ query: string; wait: string; sent: number }>(
      test,
      `SELECT query, wait_event AS wait, coalesce((SELECT bytes_processed::float8 FROM pg_stat_progress_copy p WHERE p.pid = a.pid), 0) AS sent
         FROM pg_stat_activity a WHERE datname = current_database() AND application_name ~ '^repave [^/ ]+/'`,
    );
    return row;
  };
  const copying = (signal?: AbortSignal) =>
    until('the COPY to have come to the source’s stall', async () => {
      const now = await doing();
      return signal?.aborted || (now?.query.startsWith('COPY') && now.wait === 'ClientRead' && now.sent > 0);
    });

  it('go into the transaction’s COPY while the source gives them, and replace the old ones at once', async () => {
    const steps: string[] = [];
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(async function* ({ key }) {
        yield* many(key);
        await copying();
        assert.deepEqual(await standing(), OLD);
      }, STRAIGHT);
      const onStep = (step: FillStep, rows: number) => void steps.push(`${step} ${rows}`);
      const outcome = await fill(database, fillRequest(pipeline, { onStep }));
      assert.deepEqual([outcome.rows, outcome.deleted], [MANY, 1]);
    });
    assert.deepEqual(await standing(), [{ rows: MANY, first: 0 }]);
    assert.ok(!steps.some((step) => step.startsWith('spool')), steps.join());
    assert.deepEqual(
      [1, 2, 3, 4, 5].filter((n) => !steps.includes(`insert ${n * 1000}`)),
      [],
    );
  });

  it('may be none', async () => {
    await withWorker(test, async (database) => {
      const outcome = await fill(database, fillRequest(typescriptPipeline(() => [], STRAIGHT)));
      assert.deepEqual([outcome.rows, outcome.deleted, outcome.warnings], [0, 1, ['emptied']]);
    });
    assert.deepEqual(await test.sql('SELECT FROM target'), []);
  });

  it('of a source that fails before its first row cost no DELETE', async () => {
    const sent: StatementKind[] = [];
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(() => {
        throw new Error('no answer');
      }, STRAIGHT);
      await withStatements({ before: ({ kind }) => void sent.push(kind) }, () =>
        failsAs(fill(database, fillRequest(pipeline)), 'SourceFailed'),
      );
    });
    assert.ok(sent.includes('look'));
    assert.ok(!sent.includes('delete'), sent.join());
    assert.deepEqual(await standing(), OLD);
  });

  it('of a source that breaks off are none: the old ones stand, whatever was sent', async () => {
    for (const rows of [1, MANY]) {
      await withWorker(test, async (database) => {
        const pipeline = typescriptPipeline(async function* ({ key }) {
          yield* many(key, rows);
          if (rows === MANY) await copying();
          throw Object.assign(new Error('secret row'), { code: 'ECONNRESET' });
        }, STRAIGHT);
        const failure = await failsAs(fill(database, fillRequest(pipeline)), 'SourceFailed');
        assert.match(failure.message, /threw Error \(ECONNRESET\)/);
        // Its connection is of use again, or was closed; either way the next fill has one.
        const after = await fill(database, fillRequest(typescriptPipeline(({ key }) => many(key, 3), STRAIGHT)));
        assert.deepEqual([after.rows, after.deleted], [3, rows === 1 ? 1 : 3]);
      });
    }
    assert.equal(await openFills(test), 0);
    assert.equal((await fills(test)).length, 2);
  });

  it('that cannot be stored end it as DataError that names row and column, judged here or by the server', async () => {
    for (const [n, problem] of [
      [1.5, /^Row 5001, column "n" \(integer\): .*whole number/],
      ['no number', /22P02 in row 5001, column "n"\./],
    ] as const) {
      await withWorker(test, async (database) => {
        const pipeline = typescriptPipeline(function* ({ key }) {
          yield* many(key);
          yield { day: key, n, note: null };
          yield* many(key);
        }, STRAIGHT);
        const failure = await failsAs(fill(database, fillRequest(pipeline)), 'DataError');
        assert.match(failure.message, problem);
      });
      assert.deepEqual(await standing(), OLD);
    }
  });

  it('are told so when the server has refused them: `return` is called, once', async () => {
    let returned = 0;
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(async function* ({ key }) {
        try {
          yield { day: key, n: 'no number', note: null };
          for (let n = 0; ; n++) {
            yield { day: key, n, note: 'x'.repeat(1_000) };
            if (n % 100 === 0) await delay(1);
          }
        } finally {
          returned += 1;
        }
      }, STRAIGHT);
      await failsAs(fill(database, fillRequest(pipeline)), 'DataError');
    });
    await until('the source to have ended', async () => returned > 0);
    assert.equal(returned, 1);
  });

  for (const [when, rows] of [
    ['before its first row', 0],
    ['in the COPY', MANY],
  ] as const) {
    it(`of a source that stalls ${when} end with a cancel or the deadline, whether it heeds its signal or not`, async () => {
      const reason = new Error('cancelled');
      for (const heeds of [true, false]) {
        for (const by of ['cancel', 'deadline'] as const) {
          // On a slow machine the time may be up before the source stalls: then it is given more.
          for (let [stalls, time] = [false, 500]; !stalls; time *= 3) {
            const cancel = new AbortController();
            let cleared = false;
            await withWorker(test, async (database) => {
              const pipeline = typescriptPipeline(async function* ({ key, signal }) {
                try {
                  yield* many(key, rows);
                  if (rows > 0) await copying(signal);
                  stalls = !signal.aborted;
                  if (by === 'cancel') cancel.abort(reason);
                  if (heeds) {
                    if (!signal.aborted) await once(signal, 'abort');
                    signal.throwIfAborted();
                  }
                  await new Promise(() => undefined);
                } finally {
                  cleared = true;
                }
              }, STRAIGHT);
              const options = { signal: cancel.signal, timeLeftMs: by === 'deadline' ? time : undefined };
              const filling = within('the stalled fill', fill(database, fillRequest(pipeline, options)));
              if (by === 'cancel') await assert.rejects(filling, (error) => error === reason);
              else await failsAs(filling, 'TimedOut');
              assert.equal(await openFills(test), 0, 'no session of it is left');
            });
            if (stalls) assert.equal(cleared, heeds);
            assert.deepEqual(await standing(), OLD);
          }
        }
      }
    });
  }

  it('of a source that stalls end it as DatabaseUnavailable where the server ends the session', async () => {
    // The fill may hear of it before this does.
    let ending: Promise<readonly unknown[]> | undefined;
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(async function* ({ key }) {
        yield* many(key);
        await copying();
        ending = asSuperuser(
          test,
          `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name ~ '^repave [^/ ]+/'`,
        );
        await new Promise(() => undefined);
      }, STRAIGHT);
      await within('the fill', failsAs(fill(database, fillRequest(pipeline)), 'DatabaseUnavailable'));
    });
    assert.equal((await ending)?.length, 1);
    assert.deepEqual(await standing(), OLD);
  });

  it('may be long in coming: that nothing moves meanwhile is not taken for a lost connection', async () => {
    let looks = 0;
    await withWorker(
      test,
      async (database) => {
        const pipeline = typescriptPipeline(async function* ({ key }) {
          yield* many(key);
          await copying();
          const before = looks;
          // By the first it knows what has moved, and two that agree would do.
          await until('looks of the watchdog', async () => looks >= before + 4);
          yield { day: key, n: MANY, note: 'late' };
        }, STRAIGHT);
        const after = ({ text }: Statement): void => void (looks += Number(text.includes(LOOK)));
        const outcome = await withStatements({ after }, () => fill(database, fillRequest(pipeline)));
        assert.equal(outcome.rows, MANY + 1);
      },
      // Four that are not answered end it too.
      { watchEveryMs: 2_000 },
    );
  });

  it('may be long in coming before the first, although the server ends transactions that stand idle', async () => {
    await withWorker(test, async (database) => {
      const pipeline = typescriptPipeline(async function* ({ key }) {
        await delay(6_000);
        yield* many(key);
      }, STRAIGHT);
      // Longer than a slow machine takes between two statements.
      const rewrite = ({ kind, text, values }: Statement) => {
        if (kind !== 'pins') return undefined;
        assert.ok(values.includes('60000'), 'the limit is 60 s');
        return { text, values: values.map((value) => (value === '60000' ? '5000' : value)) };
      };
      const outcome = await withStatements({ rewrite }, () => fill(database, fillRequest(pipeline)));
      assert.equal(outcome.rows, MANY);
    });
  });

  it('are asked for only as fast as the server takes them', async () => {
    await test.sql(`
      CREATE FUNCTION waits() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN PERFORM pg_advisory_xact_lock_shared(42); RETURN NEW; END $$;
      CREATE TRIGGER waits BEFORE INSERT ON target FOR EACH ROW WHEN (NEW.n = 1) EXECUTE FUNCTION waits();`);
    let asked = 0;
    const all = 60_000;
    await withClient(test.ownerUrl, async (holder) => {
      await holder.query('SELECT pg_advisory_lock(42)');
      await withWorker(test, async (database) => {
        const pipeline = typescriptPipeline(function* ({ key }) {
          for (const row of many(key, all)) {
            asked += 1;
            yield row;
          }
        }, STRAIGHT);
        const filling = fill(database, fillRequest(pipeline));
        await until('the server to wait', async () => (await doing())?.wait === 'advisory');
        // As long as it takes more, it has not been filled up.
        for (let before = -1; before !== asked;) {
          before = asked;
          await delay(200);
        }
        const [{ sent } = { sent: 0 }] = [await doing()];
        assert.ok(asked < all, `all ${asked} rows were asked for, and the server had taken ${sent} bytes`);
        await holder.query('SELECT pg_advisory_unlock(42)');
        assert.equal((await filling).rows, all);
      });
    });
  });

  it('of a process that is killed in the middle leave the old ones, and no session', async () => {
    const child = startFilling({ url: test.url, rows: [MANY], stalls: true, straight: true });
    children.push(child);
    await child.line(/^given 5000$/);
    await copying();
    child.process.kill('SIGKILL');
    await once(child.process, 'exit');
    await until('the killed process has no session', async () => (await openFills(test)) === 0);
    assert.deepEqual(await standing(), OLD);
    await withWorker(test, async (database) => {
      const outcome = await fill(database, fillRequest(typescriptPipeline(({ key }) => many(key), STRAIGHT)));
      assert.deepEqual([outcome.rows, outcome.deleted], [MANY, 1]);
    });
  });

  it('of two runs at once on one window are the one’s and then the other’s, each read when its turn has come', async () => {
    const read: string[] = [];
    await withWorker(test, async (database) => {
      const run = (name: string, count: number) => {
        const pipeline = typescriptPipeline(async function* ({ key }) {
          read.push(`${name} begins`);
          yield* many(key, count);
          await delay(20);
          read.push(`${name} ends`);
        }, STRAIGHT);
        return withStatements({ rewrite: untilLetGo }, () => fill(database, fillRequest(pipeline)));
      };
      const outcomes = await Promise.all([run('one', 300), run('two', 400)]);
      const [first] = read[0] === 'one begins' ? [0] : [1];
      assert.deepEqual(
        outcomes.map(({ rows, deleted }) => [rows, deleted]),
        first === 0
          ? [
              [300, 1],
              [400, 300],
            ]
          : [
              [300, 400],
              [400, 1],
            ],
      );
      assert.deepEqual(await standing(), [{ rows: first === 0 ? 400 : 300, first: 0 }]);
    });
    assert.equal(read[1]?.split(' ')[0], read[0]?.split(' ')[0], read.join());
  });
});
