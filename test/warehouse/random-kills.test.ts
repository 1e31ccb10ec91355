import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { keysBetween } from '../../src/calendar/range.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, fills, ledgerRows, sqlPipeline, typescriptPipeline, within } from '../support/fill.js';
import { fillWithRetries } from '../support/retry.js';
import { randomFrom, seed } from '../support/seed.js';

const FILLS = 100;
const LANES = 8;
/** Milliseconds between two kills at least. On a slow machine it is longer, so that fills get through between them. */
const KILL_EVERY_MS = 200;

/** Long enough that most kills find it open. */
const QUERY = sqlPipeline('SELECT :date AS day, g AS n FROM generate_series(1, 5) g, pg_sleep(0.2)', {
  name: 'query',
  target: { table: 'queried' },
});
const ROWS = typescriptPipeline(
  async function* ({ key }) {
    for (let n = 1; n <= 5; n++) {
      await delay(10);
      yield { day: key, n };
    }
  },
  { name: 'rows', target: { table: 'spooled' } },
);

describe('a random backend of the worker’s role ended every 200 ms at most', () => {
  let test: TestDatabase;
  let superuser: pg.Client;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE queried (day date NOT NULL, n int NOT NULL)');
    await test.sql('CREATE TABLE spooled (day date NOT NULL, n int NOT NULL)');
    superuser = new pg.Client({ connectionString: test.superuserUrl });
    await superuser.connect();
    database = await openDatabase(test.url, { fills: LANES });
  });

  after(async () => {
    await database.close();
    await superuser.end();
    await test.drop();
  });

  it('every one of 100 fills ends well, and a kill harms none but its own', async () => {
    const random = randomFrom(seed());
    const killing = new AbortController();
    let ended = 0;
    const kills = killOneAfterAnother(random, () => ended, killing.signal);
    // Fewer windows than lanes at times, so that some wait for each other.
    const windows = [...keysBetween(QUERY.partition, '2024-01-01', '2024-01-20')];
    const work = Array.from({ length: FILLS }, (_, i) => ({
      pipeline: i % 4 === 3 ? ROWS : QUERY,
      key: windows[Math.floor(random() * windows.length)] ?? '',
      run: randomUUID(),
    }));
    const queue = [...work];
    let lost = 0;
    const lane = async (): Promise<void> => {
      for (let next = queue.shift(); next; next = queue.shift()) {
        const { pipeline, ...place } = next;
        const { failures } = await fillWithRetries((attempt) =>
          fill(database, fillRequest(pipeline, { ...place, attempt })),
        );
        lost += failures.filter(({ type }) => type !== 'Conflict').length;
        ended += 1;
      }
    };
    try {
      await within('100 fills', Promise.all(Array.from({ length: LANES }, lane)));
    } finally {
      killing.abort();
    }
    const { all, inFill } = await kills;
    console.log(`      ${all} backends ended, ${inFill} of them in an open fill; ${lost} attempts lost theirs`);
    assert.ok(inFill > 0, 'no kill hit an open fill');
    assert.ok(lost <= all, `${lost} attempts were lost to ${all} kills`);
    for (const { pipeline, key, run } of work) {
      assert.equal((await fills(test, pipeline.name, key)).filter((row) => row.run === run).length, 1, key);
    }
    for (const pipeline of [QUERY, ROWS]) {
      for (const { key, rows } of await ledgerRows(test, pipeline.name)) {
        const [counted] = await test.sql<{ n: number }>(
          `SELECT count(*)::int AS n FROM ${pipeline.target.table} WHERE day = $1`,
          [key],
        );
        assert.deepEqual([counted?.n, rows], [5, 5], `${pipeline.name} ${key}`);
      }
    }
  });

  /**
   * Ends one backend of the worker's role after another, each once another fill has ended well, until the signal. Counts all, and
   * those in a fill's transaction.
   */
  async function killOneAfterAnother(
    random: () => number,
    filled: () => number,
    signal: AbortSignal,
  ): Promise<{ readonly all: number; readonly inFill: number }> {
    const killed = { all: 0, inFill: 0 };
    while (!signal.aborted) {
      const { rows } = await superuser.query<{ ended: boolean; in_fill: boolean }>(
        `SELECT pg_terminate_backend(pid) AS ended, in_fill
           FROM (SELECT pid, row_number() OVER (ORDER BY pid) - 1 AS n, count(*) OVER () AS total,
                        xact_start IS NOT NULL AND application_name ~ '^repave [^/ ]+/[^ ]+ [0-9]+$' AS in_fill
                   FROM pg_stat_activity WHERE datname = current_database() AND usename = $1) backend
          WHERE n = floor($2::float8 * total)`,
        [test.workerRole, random()],
      );
      killed.all += rows.filter(({ ended }) => ended).length;
      killed.inFill += rows.filter(({ ended, in_fill }) => ended && in_fill).length;
      const before = filled();
      do await delay(KILL_EVERY_MS);
      while (filled() === before && !signal.aborted);
    }
    return killed;
  }
});
