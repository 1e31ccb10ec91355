import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { FAILURES } from '../../src/contract.js';
import pg from 'pg';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import {
  fillRequest,
  fills,
  KEY,
  ledgerRows,
  settled,
  sqlPipeline,
  typescriptPipeline,
  until,
  within,
} from '../support/fill.js';
import { type Fate, type Message, Proxy, type ProxyRules } from '../support/proxy.js';
import { fillWithRetries } from '../support/retry.js';
import { type StatementHooks, withStatements } from '../support/statements.js';
import { setRoleDefaults } from '../support/superuser.js';

/** Connections of the pool. */
const FILLS = 2;
const NEW_ROWS = '1,2,3';

/** More faults than any fill has messages: a loop that gets here does not end. */
const MOST = 300;

const PIPELINES: readonly Pipeline[] = [
  sqlPipeline('SELECT :date AS day, g::text AS n FROM generate_series(1, 3) g', { name: 'sql' }),
  typescriptPipeline(
    function* ({ key }) {
      for (const n of ['1', '2', '3']) yield { day: key, n };
    },
    { name: 'typescript' },
  ),
];

/** With more statements in its transaction: rows that wait to be compared, and checks of their own. */
const COMPARED: Pipeline = sqlPipeline('SELECT :date AS day, g::text AS n FROM generate_series(1, 3) g', {
  name: 'compared',
  skipUnchanged: true,
  checks: [
    { kind: 'accepted', column: 'n', values: ['1', '2', '3'] },
    { kind: 'unique', columns: ['n'] },
    {
      kind: 'sql',
      query: { text: 'SELECT WHERE false', parameters: [], pieces: ['SELECT WHERE false'], slots: [] },
    },
  ],
});

describe('the n-th fault, n = 1, 2, 3, … until a fill passes untouched', function () {
  // Half a minute of work, and many times that on a slow machine.
  this.timeout(600_000);
  let test: TestDatabase;
  let superuser: pg.Client;
  let proxy: Proxy;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, n text NOT NULL)');
    superuser = new pg.Client({ connectionString: test.superuserUrl });
    await superuser.connect();
    proxy = await Proxy.before(test.url);
  });

  after(async () => {
    await proxy.close();
    await superuser.end();
    await test.drop();
  });

  // Mocha fails a test by what is thrown or rejected where nobody catches it.
  afterEach(() => proxy.restart({}));

  for (const pipeline of PIPELINES) {
    describe(`(${pipeline.kind})`, () => {
      it('the connection cut before the client’s message n', () =>
        untilUntouched(
          pipeline,
          atMessage(() => true, 'cut'),
        ));

      it('the connection cut as a request arrives at the server', () =>
        untilUntouched(pipeline, atMessage(asksForAnswer, 'pass and cut')));

      it('the connection cut in place of answer n', () =>
        untilUntouched(pipeline, atMessage(asksForAnswer, 'lose the answer')));

      it('the backend ended after answer n, between two statements', () => untilUntouched(pipeline, endedAfterAnswer));
    });
  }

  it('the connection cut in place of answer n, of a fill that compares and checks', () =>
    untilUntouched(COMPARED, atMessage(asksForAnswer, 'lose the answer')));

  it('shows an emptied window where each statement of the fill commits by itself', async () => {
    const [pipeline] = PIPELINES as [Pipeline];
    // Between two transactions the server may take its counters of rows back to nothing, for which the fill would be refused.
    await setRoleDefaults(test, { track_counts: 'off' });
    const alone: StatementHooks['rewrite'] = ({ kind, text }) =>
      kind === 'begin' || /^(SAVEPOINT|ROLLBACK TO)/.test(text) ? { text: 'SELECT 1', values: [] } : undefined;
    try {
      await assert.rejects(
        withStatements({ rewrite: alone }, () =>
          untilUntouched(
            pipeline,
            atMessage(() => true, 'cut'),
          ),
        ),
        (error) => error instanceof assert.AssertionError && error.expected === 'old' && error.actual === null,
      );
    } finally {
      await setRoleDefaults(test, { track_counts: 'DEFAULT' });
    }
  });

  it('the connection cut before message n of those that open it', async () => {
    const [pipeline] = PIPELINES as [Pipeline];
    for (let n = 1; ; n++) {
      const database = await openDatabase(proxy.url(test.url), { fills: FILLS });
      try {
        const opens = await faultAt(database, pipeline, n, (n) => atMessage(({ type }) => isOpening(type), 'cut')(n));
        if (opens) continue;
        assert.ok(n > 3, 'a connection opens with more than three messages');
        return;
      } finally {
        await database.close();
      }
    }
  });

  it('the backend ended in the tick that hands its new connection out', async () => {
    for (const pipeline of PIPELINES) {
      const database = await openDatabase(proxy.url(test.url), { fills: FILLS });
      try {
        assert.ok(await faultAt(database, pipeline, 1, endedAfterAnswer));
      } finally {
        await database.close();
      }
    }
  });

  /** Ends the backend after the n-th answer of the server, before the client has read that. */
  function endedAfterAnswer(n: number): ArmedFault {
    let answers = 0;
    let struck = false;
    return {
      rules: {
        onReady: (connection) => {
          answers += 1;
          if (answers !== n || connection.pid === undefined) return undefined;
          struck = true;
          return endBackend(connection.pid);
        },
      },
      struck: () => struck,
    };
  }

  async function endBackend(pid: number): Promise<void> {
    await superuser.query('SELECT pg_terminate_backend($1)', [pid]);
    await until('the backend has gone', async () => {
      const left = await superuser.query('SELECT FROM pg_stat_activity WHERE pid = $1', [pid]);
      return left.rows.length === 0;
    });
  }

  /** With one pool for all, whose connections stand open when each fill begins. */
  async function untilUntouched(pipeline: Pipeline, fault: Fault): Promise<void> {
    const database = await openDatabase(proxy.url(test.url), { fills: FILLS });
    try {
      await allConnections(database);
      for (let n = 1; n <= MOST; n++) {
        if (await faultAt(database, pipeline, n, fault)) continue;
        assert.ok(n > 10, `a fill has more than ${n} messages and answers`);
        return;
      }
      assert.fail(`A fill still met fault ${MOST}`);
    } finally {
      await database.close();
    }
  }

  /** A fill with the n-th fault, then its retry. Returns whether the fault struck. */
  async function faultAt(database: Database, pipeline: Pipeline, n: number, fault: Fault): Promise<boolean> {
    const where = `fault ${n}`;
    await test.sql('TRUNCATE target, repave.fill, repave.partition, repave.claim');
    await test.sql('INSERT INTO target VALUES ($1, $2)', [KEY, 'old']);
    const run = randomUUID();
    const { rules, struck } = fault(n);
    proxy.restart(rules);
    const first = await within(where, settled(fill(database, fillRequest(pipeline, { run }))));
    proxy.restart({});
    const { found, committed } = await seen();
    if (first.failure) {
      assert.ok(struck(), `${where} failed untouched: ${first.failure.message}`);
      assert.equal(FAILURES[first.failure.type], 'world', `${where}: ${first.failure.type} ${first.failure.message}`);
    }
    assert.equal(found, committed ? NEW_ROWS : 'old', where);

    const { outcome } = await within(
      `the retry after ${where}`,
      fillWithRetries((attempt) => fill(database, fillRequest(pipeline, { run, attempt })), 2),
    );
    if (committed) assert.equal(outcome.found, true, where);
    assert.deepEqual(await seen(), { found: NEW_ROWS, committed: true }, where);
    const [ledger] = await ledgerRows(test, pipeline.name);
    assert.deepEqual([(await fills(test, pipeline.name)).length, ledger?.rows, ledger?.outcome], [1, 3, 'filled']);
    await allConnections(database);
    return struck();
  }

  /** Rows and ledger as one reader's statement sees them. */
  async function seen(): Promise<{ found: string; committed: boolean }> {
    const [row] = await test.sql<{ found: string; committed: boolean }>(
      `SELECT (SELECT string_agg(n, ',' ORDER BY n) FROM target) AS found, EXISTS (SELECT FROM repave.fill) AS committed`,
    );
    return row ?? { found: '', committed: false };
  }

  /** Every connection of the pool is to be had, all at once, and none has kept a lock. */
  async function allConnections(database: Database): Promise<void> {
    const { signal } = new AbortController();
    const wanted = Array.from({ length: FILLS }, () => database.session(signal));
    for (const session of await within('every connection of the pool', Promise.all(wanted))) {
      const held = await session.rows(
        `SELECT FROM pg_locks WHERE pid = pg_backend_pid() AND (locktype = 'advisory' OR relation = 'target'::regclass)`,
      );
      assert.equal(held.length, 0);
      session.release();
    }
  }
});

interface ArmedFault {
  readonly rules: ProxyRules;
  readonly struck: () => boolean;
}

/** Arms the n-th fault of a kind. */
type Fault = (n: number) => ArmedFault;

/** The n-th message of a kind meets a fate. */
function atMessage(kind: (message: Message) => boolean, fate: Fate): Fault {
  return (n) => {
    let seen = 0;
    let struck = false;
    return {
      rules: {
        onMessage: (message) => {
          if (!kind(message) || ++seen !== n) return 'pass';
          struck = true;
          return fate;
        },
      },
      struck: () => struck,
    };
  };
}

/** A query, the Sync behind an extended one, or the end of a COPY. */
function asksForAnswer({ type }: Message): boolean {
  return type === 'Q' || type === 'S' || type === 'c';
}

function isOpening(type: string): boolean {
  return type === 'startup' || type === 'p';
}
