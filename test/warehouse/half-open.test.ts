import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { keysBetween } from '../../src/calendar/range.js';
import type { Pipeline, RowSource } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { atWork, superuserPool } from '../support/at-work.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, fills, PATIENT, sqlPipeline, typescriptPipeline, within } from '../support/fill.js';
import { looksAmong } from '../support/looks.js';
import { type Message, Proxy } from '../support/proxy.js';
import { fillWithRetries } from '../support/retry.js';

/** Milliseconds between two looks at a backend: short, so that the test is. */
const WATCH_EVERY_MS = 250;
/** The same where a fill is to get through, on a slow machine too. */
const LATER_MS = 2_000;
/** So seldom that nothing but the cancel can end what stands still. */
const NEVER_MS = PATIENT.watchEveryMs;

const ROWS: RowSource = function* ({ key }) {
  for (const n of ['1', '2', '3']) yield { day: key, n };
};
const PIPELINES: readonly (readonly [kind: string, pipeline: Pipeline])[] = [
  ['sql', sqlPipeline('SELECT :date AS day, g::text AS n FROM generate_series(1, 3) g')],
  ['typescript', typescriptPipeline(ROWS)],
  ['typescript, straight', typescriptPipeline(ROWS, { stage: false })],
];

/** A fill's connection that stands still at one of its requests: the server does not get it, or its answer is lost. */
interface StandStill {
  readonly database: Database;
  readonly key: string;
  readonly where: string;
  /** Resolves once it does. */
  readonly stands: Promise<void>;
}

describe('a fill whose connection stands still, and is not closed', () => {
  let test: TestDatabase;
  let superuser: pg.Pool;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, n text NOT NULL)');
    superuser = superuserPool(test);
  });

  after(async () => {
    await superuser.end();
    await test.drop();
  });

  beforeEach(() => test.sql('TRUNCATE target, repave.fill, repave.partition, repave.claim'));

  for (const [kind, pipeline] of PIPELINES) {
    for (const lost of ['request', 'answer'] as const) {
      describe(`(${kind}; at each of its requests the ${lost} is lost)`, () => {
        it('ends as DatabaseUnavailable, and the next attempt fills', () =>
          atEachRequest(pipeline, lost, WATCH_EVERY_MS, async ({ database, key, where }) => {
            const run = randomUUID();
            await within(where, failsAs(fill(database, fillRequest(pipeline, { run, key })), 'DatabaseUnavailable'));
            // Hardly anything stands still from here on: what a slow machine is late to answer is not given up.
            Reflect.set(database, 'watchEveryMs', LATER_MS);
            const retried = fillWithRetries(
              (attempt) => fill(database, fillRequest(pipeline, { run, key, attempt })),
              2,
            );
            await within(`the attempts after ${where}`, retried);
            assert.equal((await fills(test, 'target', key)).length, 1, where);
            assert.equal(await rows(key), '1,2,3', where);
          }));

        it('ends at once when it is cancelled, and nothing of it is left', () =>
          atEachRequest(pipeline, lost, NEVER_MS, async ({ database, key, where, stands }) => {
            const run = randomUUID();
            const cancel = new AbortController();
            const reason = new Error('cancelled by the test');
            const rejected = assert.rejects(
              fill(database, fillRequest(pipeline, { run, key, signal: cancel.signal })),
              reason,
            );
            await within(where, Promise.race([stands, rejected]));
            cancel.abort(reason);
            await within(`the cancel, ${where}`, rejected);
            assert.deepEqual(await atWork(superuser, run), [], where);
            // No lock of it is in the way of another run.
            await within(`another run after ${where}`, fill(database, fillRequest(pipeline, { key })));
            assert.equal(await rows(key), '1,2,3', where);
          }));
      });
    }
  }

  /** Tries every request of a fill at once, each with a database, a proxy and a partition of its own. */
  async function atEachRequest(
    pipeline: Pipeline,
    lost: 'request' | 'answer',
    watchEveryMs: number,
    use: (still: StandStill) => Promise<void>,
  ): Promise<void> {
    const requests = await requestsOf(pipeline);
    assert.ok(requests.length > 10, `a fill has more than ${requests.length} requests`);
    const keys = [...keysBetween(pipeline.partition, '2024-01-01', '2024-02-29')];
    const tries = await Promise.allSettled(
      requests.map(async (sql, i) => {
        const proxy = await Proxy.before(test.url);
        const database = await openDatabase(proxy.url(test.url), { fills: 1, ...PATIENT, watchEveryMs });
        const where = `request ${i + 1}, ${sql.slice(0, 60)}`;
        try {
          (await database.session(new AbortController().signal)).release();
          const stands = new Promise<void>((resolve) => {
            const count = countRequests();
            let struck = false;
            proxy.restart({
              onMessage: (message) => {
                const { request, isLast } = count(message);
                if (struck || request !== i + 1 || (lost === 'answer' && !isLast)) return 'pass';
                struck = true;
                resolve();
                return lost === 'answer' ? 'pass and freeze' : 'freeze';
              },
            });
          });
          await use({ database, key: keys[i] ?? '', where, stands });
        } finally {
          await proxy.close();
          await database.close();
        }
      }),
    );
    // Once all have ended: one that goes on would be in the next test's way.
    for (const one of tries) if (one.status === 'rejected') throw one.reason;
  }

  /** The SQL of each request of a fill that nothing disturbs, in order. */
  async function requestsOf(pipeline: Pipeline): Promise<string[]> {
    const proxy = await Proxy.before(test.url);
    const database = await openDatabase(proxy.url(test.url), { fills: 1 });
    const requests: string[] = [];
    try {
      (await database.session(new AbortController().signal)).release();
      const count = countRequests();
      proxy.restart({
        onMessage: (message) => {
          const { request } = count(message);
          if (request > 0) requests[request - 1] ||= message.sql || `(${message.type})`;
          return 'pass';
        },
      });
      await fill(database, fillRequest(pipeline, { key: '2024-12-31' }));
      return requests;
    } finally {
      await database.close();
      await proxy.close();
    }
  }

  async function rows(key: string): Promise<string> {
    const [row] = await test.sql<{ n: string }>(
      `SELECT string_agg(n, ',' ORDER BY n) AS n FROM target WHERE day = $1`,
      [key],
    );
    return row?.n ?? '';
  }
});

/**
 * Numbers requests, each one or more messages: a query, an extended query up to its Sync, the rows of a COPY, its end. A look of
 * the watchdog is 0.
 */
function countRequests(): (message: Message) => { readonly request: number; readonly isLast: boolean } {
  let request = 0;
  let within: string | undefined;
  const isLook = looksAmong();
  return (message) => {
    if (isLook(message)) return { request: 0, isLast: false };
    const { type } = message;
    const begins = type === 'Q' || type === 'P' || type === 'c' || (type === 'd' && within !== 'd');
    if (begins) request += 1;
    within = type;
    return { request, isLast: type === 'Q' || type === 'S' || type === 'c' || type === 'd' };
  };
}
