import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { endFill } from '../../src/warehouse/end-fill.js';
import { fill } from '../../src/warehouse/fill.js';
import type { FillOutcome } from '../../src/warehouse/fill-request.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  failsAs,
  fillRequest,
  fills,
  KEY,
  ledgerRows,
  NO_LOOKS_MS,
  settled,
  sqlPipeline,
  typescriptPipeline,
  until,
  within,
} from '../support/fill.js';
import { type Fate, Proxy, type ProxyRules } from '../support/proxy.js';
import { fillWithRetries } from '../support/retry.js';
import { kindOf, type StatementHooks, unhooked, withStatements } from '../support/statements.js';

const NEW_ROWS = ['1', '2', '3'];

const PIPELINES: readonly Pipeline[] = [
  sqlPipeline('SELECT :date AS day, g::text AS n FROM generate_series(1, 3) g', { name: 'sql' }),
  typescriptPipeline(
    function* ({ key }) {
      for (const n of NEW_ROWS) yield { day: key, n };
    },
    { name: 'typescript' },
  ),
];

describe('a COMMIT whose answer is lost', () => {
  let test: TestDatabase;
  let proxy: Proxy;
  let database: Database;
  let superuser: pg.Client;
  let otherRole: string;
  let otherUrl: string;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, n text NOT NULL)');
    otherRole = `${test.name}_other`;
    const password = randomUUID();
    superuser = new pg.Client({ connectionString: test.superuserUrl });
    await superuser.connect();
    await superuser.query(`CREATE ROLE ${otherRole} LOGIN PASSWORD '${password}' IN ROLE ${test.workerRole}`);
    otherUrl = Object.assign(new URL(test.url), { username: otherRole, password }).href;
    proxy = await Proxy.before(test.url);
    database = await openDatabase(proxy.url(test.url), { fills: 2, watchEveryMs: NO_LOOKS_MS });
  });

  after(async () => {
    await database.close();
    await proxy.close();
    await superuser.query(`DROP ROLE ${otherRole}`);
    await superuser.end();
    await test.drop();
  });

  beforeEach(async () => {
    await test.sql(`TRUNCATE target, repave.fill, repave.partition, repave.claim`);
    await test.sql(`INSERT INTO target VALUES ('${KEY}', 'old'), ('2024-03-01', 'next day')`);
  });

  afterEach(() => proxy.restart({}));

  for (const pipeline of PIPELINES) {
    describe(`(${pipeline.kind})`, () => {
      it('is a fill to be made again where the COMMIT never reached the server', async () => {
        const { first, second } = await twice(pipeline, 'cut');
        assert.equal(first, 'DatabaseUnavailable');
        assert.equal(second.found, false);
        await oneFill(pipeline, second);
      });

      it('is returned by the next attempt where the server had answered', async () => {
        const { first, second } = await twice(pipeline, 'lose the answer');
        assert.equal(first, 'DatabaseUnavailable');
        assert.equal(second.found, true);
        await oneFill(pipeline, second);
      });

      it('is one fill, whichever attempt’s, where the connection ends as the COMMIT arrives', async () => {
        const { first, second } = await twice(pipeline, 'pass and cut');
        assert.equal(first, 'DatabaseUnavailable');
        await oneFill(pipeline, second);
      });

      it('is returned by endFill, and recorded as no failure', async () => {
        const run = randomUUID();
        const struck = strikeCommit('lose the answer');
        await failsAs(fill(database, fillRequest(pipeline, { run })), 'DatabaseUnavailable');
        assert.equal(struck(), 1);
        const ended = await within('endFill', endFill(database, { pipeline: pipeline.name, key: KEY, run }));
        assert.equal(ended?.rows, 3);
        await oneFill(pipeline, { ...ended, found: true });
      });

      it('is returned where the held COMMIT arrives while the next attempt waits for its claim', async () => {
        const run = randomUUID();
        // A look may miss a wait, which is a short one.
        let waited = false;
        const waits = until('attempt 2 waits for the claim', async () => waited || (await waitsForLock(run)));
        const struck = strikeCommit({ holdUntil: waits });
        await failsAs(fill(database, fillRequest(pipeline, { run })), 'DatabaseUnavailable');
        assert.equal(struck(), 1);
        const committed = async (): Promise<boolean> => (await fills(test, pipeline.name)).length === 1;
        const hooks: StatementHooks = {
          // On a slow machine the COMMIT arrives only after attempt 2 has waited long enough to end the backend.
          before: async ({ kind }) => {
            if (kind !== 'end-backends') return;
            waited = true;
            await unhooked(() => until('attempt 1 has committed', committed));
          },
        };
        const second = await within(
          'attempt 2',
          withStatements(hooks, () => fill(database, fillRequest(pipeline, { run, attempt: 2 }))),
        );
        assert.equal(second.found, true);
        await oneFill(pipeline, second);
      });

      it('is refused where the held COMMIT arrives after the next attempt has ended its backend', async () => {
        let release = (): void => undefined;
        const { second } = await twice(pipeline, { holdUntil: new Promise<void>((resolve) => (release = resolve)) });
        assert.equal(second.found, false);
        await oneFill(pipeline, second);
        release();
        await proxy.gone();
        await oneFill(pipeline, second);
      });

      it('is awaited and returned where the held COMMIT arrives 2 s later and its backend is another role’s', async () => {
        const run = randomUUID();
        const struck = strikeCommit({ holdUntil: delay(2_000) });
        await failsAs(fill(database, fillRequest(pipeline, { run })), 'DatabaseUnavailable');
        assert.equal(struck(), 1);
        const other = await openDatabase(otherUrl, { fills: 1, watchEveryMs: NO_LOOKS_MS });
        try {
          const { outcome } = await within(
            'the other role’s attempts',
            fillWithRetries((attempt) => fill(other, fillRequest(pipeline, { run, attempt })), 2),
          );
          assert.equal(outcome.found, true);
          await oneFill(pipeline, outcome);
        } finally {
          await other.close();
        }
      });

      it('is no success where the server answers ROLLBACK', async () => {
        const run = randomUUID();
        const failure = await failsAs(
          withStatements(breakTransactionBeforeCommit(), () => fill(database, fillRequest(pipeline, { run }))),
          'Conflict',
        );
        assert.equal(failure.final, false);
        assert.deepEqual(await rows(), ['old']);
        assert.deepEqual(await fills(test, pipeline.name), []);
        const second = await fill(database, fillRequest(pipeline, { run, attempt: 2 }));
        assert.equal(second.found, false);
        await oneFill(pipeline, second);
      });
    });
  }

  describe('caught where the protocol is broken:', () => {
    const [pipeline] = PIPELINES as [Pipeline];

    it('an attempt that does not look for its run’s fill makes no second one, and cannot say so', async () => {
      const run = randomUUID();
      strikeCommit('lose the answer');
      await failsAs(fill(database, fillRequest(pipeline, { run })), 'DatabaseUnavailable');
      const second = await settled(
        withStatements({ rewrite: blindLook }, () => fill(database, fillRequest(pipeline, { run, attempt: 2 }))),
      );
      assert.equal(second.failure?.type, 'DataError');
      assert.equal((await fills(test, pipeline.name)).length, 1);
    });

    it('without that look and the ledger’s unique key there are two fills', async () => {
      await test.sql('ALTER TABLE repave.fill DROP CONSTRAINT fill_pipeline_key_run_key');
      try {
        const run = randomUUID();
        strikeCommit('lose the answer');
        await failsAs(fill(database, fillRequest(pipeline, { run })), 'DatabaseUnavailable');
        const second = await withStatements({ rewrite: blindLook }, () =>
          fill(database, fillRequest(pipeline, { run, attempt: 2 })),
        );
        await assert.rejects(oneFill(pipeline, second), assert.AssertionError);
      } finally {
        await test.sql('TRUNCATE repave.fill');
        await test.sql('ALTER TABLE repave.fill ADD UNIQUE (pipeline, key, run)');
      }
    });

    it('without the lock, the rows of a COMMIT that comes late double those of another run', async () => {
      await test.sql('DELETE FROM target WHERE day = $1', [KEY]);
      let release = (): void => undefined;
      const struck = strikeCommit({ holdUntil: new Promise<void>((resolve) => (release = resolve)) });
      const noLock: StatementHooks['rewrite'] = ({ kind }) =>
        kind === 'lock' ? { text: 'SELECT 1', values: [] } : undefined;
      await withStatements({ rewrite: noLock }, async () => {
        await failsAs(fill(database, fillRequest(pipeline)), 'DatabaseUnavailable');
        assert.equal(struck(), 1);
        const run = randomUUID();
        const second = settled(fill(database, fillRequest(pipeline, { run })));
        // In its guard, for the ledger's row: by then its rows are in.
        await until('the second run waits for the first', () => waitsForLock(run));
        release();
        assert.equal((await within('the second run', second)).failure, undefined);
      });
      await until('the held COMMIT is through', async () => (await fills(test, pipeline.name)).length === 2);
      assert.deepEqual(await rows(), ['1', '1', '2', '2', '3', '3']);
    });
  });

  /** Attempt 1 meets `fate` at its COMMIT; attempt 2, and more as they are needed, go on. */
  async function twice(pipeline: Pipeline, fate: Fate) {
    const run = randomUUID();
    const struck = strikeCommit(fate);
    const first = await within('attempt 1', settled(fill(database, fillRequest(pipeline, { run }))));
    assert.equal(struck(), 1, 'no COMMIT was struck');
    const { outcome } = await within(
      'the attempts after it',
      fillWithRetries((attempt) => fill(database, fillRequest(pipeline, { run, attempt })), 2),
    );
    return { first: first.failure?.type, second: outcome };
  }

  /** Lets the first COMMIT that follows a guard meet its fate. Returns how many did. */
  function strikeCommit(fate: Fate): () => number {
    const guarded = new Set<unknown>();
    let struck = 0;
    const onMessage: ProxyRules['onMessage'] = ({ connection, sql }) => {
      if (kindOf(sql) === 'guard') guarded.add(connection);
      if (kindOf(sql) !== 'commit' || !guarded.has(connection) || struck > 0) return 'pass';
      struck += 1;
      return fate;
    };
    proxy.restart({ onMessage });
    return () => struck;
  }

  /** Asked as superuser: from other roles a session's wait is hidden. */
  async function waitsForLock(run: string): Promise<boolean> {
    const waiting = await superuser.query(
      `SELECT FROM pg_stat_activity WHERE application_name LIKE $1 AND wait_event_type = 'Lock'`,
      [`repave ${run}/%`],
    );
    return waiting.rows.length > 0;
  }

  async function rows(): Promise<string[]> {
    const found = await test.sql<{ n: string }>('SELECT n FROM target WHERE day = $1 ORDER BY n', [KEY]);
    return found.map(({ n }) => n);
  }

  /** One copy of the new rows, one fill and one ledger row that say so, and the neighbour as it was. */
  async function oneFill(pipeline: Pipeline, outcome: FillOutcome): Promise<void> {
    assert.deepEqual(await rows(), NEW_ROWS);
    const committed = await fills(test, pipeline.name);
    assert.equal(committed.length, 1);
    assert.equal(committed[0]?.fence, outcome.fence);
    assert.deepEqual([committed[0]?.deleted, committed[0]?.inserted], [1, 3]);
    assert.deepEqual([outcome.deleted, outcome.rows], [1, 3]);
    const [ledger] = await ledgerRows(test, pipeline.name);
    assert.deepEqual([ledger?.outcome, ledger?.rows, ledger?.fence], ['filled', 3, outcome.fence]);
    assert.equal((await test.sql(`SELECT FROM target WHERE n = 'next day'`)).length, 1);
  }
});

/** Ends the transaction by an error of which the fill does not hear, after its guard. */
function breakTransactionBeforeCommit(): StatementHooks {
  let guarded = false;
  return {
    before: async ({ kind, client }) => {
      if (kind === 'guard') guarded = true;
      if (kind === 'commit' && guarded) await unhooked(() => client.query('SELECT 1 / 0').catch(() => undefined));
    },
  };
}

/** A look that finds no fill of its own run. */
const blindLook: StatementHooks['rewrite'] = ({ kind, text, values }) =>
  kind === 'look' ? { text: text.replace(/run = \$4\) AS own/, `run = $4 || '?') AS own`), values } : undefined;
