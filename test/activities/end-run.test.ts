import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import type { ActivityDeps } from '../../src/activities/activity-deps.js';
import { endBackfill } from '../../src/activities/end-backfill.js';
import { endBatch } from '../../src/activities/end-batch.js';
import { endFill } from '../../src/activities/end-fill.js';
import type { PlannedPlace } from '../../src/activities/messages.js';
import { placeOfRun } from '../../src/activities/place.js';
import { recordFailure } from '../../src/activities/record-failure.js';
import { Failure } from '../../src/failure.js';
import { beginBackfill, readBackfills } from '../../src/warehouse/backfills.js';
import { claim } from '../../src/warehouse/claim.js';
import type { Database } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { ledgerId, registerPipeline } from '../../src/warehouse/ledger.js';
import { withSession } from '../../src/warehouse/with-session.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, sqlPipeline, withWorker } from '../support/fill.js';

const QUERY = 'SELECT :date::date AS day';
const [FILLED, CLAIMED] = ['2024-02-28', '2024-02-29'] as const;
const FAILED = { type: 'TimedOut', message: 'no worker has it', attempt: 1 } as const;

/** A worker without pipelines that has the URLs of these variables. */
function depsOf(database: Database, urls: readonly string[] = ['DATABASE_URL']): ActivityDeps {
  return {
    pipelines: new Map(),
    broken: new Map(),
    unregistered: new Map(),
    registerAgain: async () => undefined,
    withDatabase: (_place, use) => use(database),
    withSource: (_place, use) => use(undefined),
    hasUrl: (variable) => urls.includes(variable),
    hooks: [],
    hasSearchAttributes: () => Promise.resolve(false),
  };
}

async function answer<Request, Answer>(
  activity: (request: Request) => Promise<Answer>,
  request: Request,
): Promise<Answer> {
  return new MockActivityEnvironment({}, { logger: new DefaultLogger('ERROR') }).run<
    [Request],
    Answer,
    typeof activity
  >(activity, request);
}

describe('ending a run where its pipeline is no more', () => {
  let test: TestDatabase;
  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL)');
  });
  after(() => test.drop());

  /** A run that has filled one partition and begun another, under a name that another has taken over since. */
  async function carriedOver(database: Database) {
    const own = randomUUID();
    const former = sqlPipeline(QUERY, { name: `former_${own}` });
    const renamed = sqlPipeline(QUERY, { name: `renamed_${own}`, formerly: former.name });
    await test.sql('TRUNCATE repave.pipeline');
    await registerPipeline(database, former);
    const run = randomUUID();
    await fill(database, fillRequest(former, { key: FILLED, run }));
    const begun = fillRequest(former, { key: CLAIMED, run });
    await withSession(database, begun.signal, (session) => claim(session, database, begun));
    const backfill = { run: own, id: `backfill/${former.name}/x`, pipeline: former.name, input: {}, total: 2 };
    await beginBackfill(database, backfill);
    assert.deepEqual(await registerPipeline(database, renamed), {
      former: former.name,
      partitions: 1,
      unfinished: [backfill.id],
    });
    const common = { pipeline: former.name, ledger: await ledgerId(database), run };
    return { common, former: former.name, renamed: renamed.name, backfill: own };
  }

  const rows = async (names: readonly string[]) => [
    await test.sql('SELECT pipeline, key, outcome FROM repave.partition WHERE pipeline = ANY ($1)', [names]),
    await test.sql('SELECT pipeline, key FROM repave.failure WHERE pipeline = ANY ($1)', [names]),
  ];

  it('finds under the new name what it has committed, and closes its claims under the old', () =>
    withWorker(test, async (database) => {
      const { common, former, renamed } = await carriedOver(database);
      const deps = depsOf(database);
      assert.equal((await answer(endFill(deps), { ...common, key: FILLED }))?.rows, 1);
      assert.equal(await answer(endFill(deps), { ...common, key: CLAIMED }), undefined);
      const { outcomes } = await answer(endBatch(deps), { ...common, keys: [FILLED, CLAIMED] });
      assert.deepEqual(
        outcomes.map(({ key, ...outcome }) => [key, 'rows' in outcome && outcome.rows]),
        [[FILLED, 1]],
      );
      assert.deepEqual(
        await test.sql('SELECT closed FROM repave.claim WHERE key = $1 AND run = $2', [CLAIMED, common.run]),
        [{ closed: true }],
      );
      assert.deepEqual(await rows([former, renamed]), [[{ pipeline: renamed, key: FILLED, outcome: 'filled' }], []]);
    }));

  it('records no failure of the old name, and ends the fill all the same', () =>
    withWorker(test, async (database) => {
      const { common, former, renamed } = await carriedOver(database);
      const deps = depsOf(database);
      assert.equal((await answer(recordFailure(deps), { ...common, key: FILLED, ...FAILED }))?.rows, 1);
      assert.equal(await answer(recordFailure(deps), { ...common, key: CLAIMED, ...FAILED }), undefined);
      const { outcomes } = await answer(endBatch(deps), { ...common, keys: [FILLED, CLAIMED], failure: FAILED });
      assert.deepEqual(
        outcomes.map(({ key, ...outcome }) => [key, 'type' in outcome && outcome.type]),
        [
          [FILLED, false],
          [CLAIMED, 'TimedOut'],
        ],
      );
      assert.deepEqual(await rows([former, renamed]), [[{ pipeline: renamed, key: FILLED, outcome: 'filled' }], []]);
      assert.deepEqual(
        await test.sql('SELECT closed FROM repave.claim WHERE key = $1 AND run = $2', [CLAIMED, common.run]),
        [{ closed: true }],
      );
    }));

  it('says how a backfill ended, under the name that it has now', () =>
    withWorker(test, async (database) => {
      const { common, former, renamed, backfill } = await carriedOver(database);
      const counts = { filled: 1, failed: 0, skipped: 0, rows: 1 };
      await answer(endBackfill(depsOf(database)), { ...common, run: backfill, outcome: 'cancelled', ...counts });
      const [row, ...others] = await readBackfills(database, { pipeline: renamed, limit: 10 });
      assert.deepEqual([row?.outcome, row?.filled, others], ['cancelled', 1, []]);
      assert.deepEqual(await readBackfills(database, { pipeline: former, limit: 10 }), []);
    }));

  it('still records the failure of a name whose file alone is gone', () =>
    withWorker(test, async (database) => {
      await test.sql('TRUNCATE repave.pipeline');
      const pipeline = sqlPipeline(QUERY, { name: 'deleted' });
      await registerPipeline(database, pipeline);
      const lost = fillRequest(pipeline, { key: CLAIMED });
      await withSession(database, lost.signal, (session) => claim(session, database, lost));
      const common = { pipeline: 'deleted', ledger: await ledgerId(database), run: lost.owner.run };
      await answer(recordFailure(depsOf(database)), { ...common, key: CLAIMED, ...FAILED });
      assert.deepEqual(await rows(['deleted']), [
        [{ pipeline: 'deleted', key: CLAIMED, outcome: 'failed' }],
        [{ pipeline: 'deleted', key: CLAIMED }],
      ]);
    }));

  it('is refused by another ledger', () =>
    withWorker(test, async (database) => {
      const request = { pipeline: 'deleted', ledger: 'another', run: randomUUID(), key: CLAIMED };
      await assert.rejects(answer(endFill(depsOf(database)), request), { type: 'WrongLedger' });
      await assert.rejects(answer(recordFailure(depsOf(database)), { ...request, ...FAILED }), { type: 'WrongLedger' });
      assert.deepEqual(await test.sql('SELECT FROM repave.claim WHERE run = $1', [request.run]), []);
    }));

  it('ends what it reads from the source that the plan names', () =>
    withWorker(test, async (database) => {
      const asked: unknown[] = [];
      const deps: ActivityDeps = {
        ...depsOf(database, ['A_URL', 'B_URL']),
        withDatabase: (place, use) => (asked.push(place.database), use(database)),
        withSource: (place, use) => (asked.push(place.source), use(undefined)),
      };
      const place: PlannedPlace = { database: 'A_URL', source: 'B_URL' };
      const common = { ...place, pipeline: 'deleted', ledger: await ledgerId(database), run: randomUUID() };
      await answer(endFill(deps), { ...common, key: CLAIMED });
      await answer(endBatch(deps), { ...common, keys: [CLAIMED] });
      assert.deepEqual(asked, ['A_URL', 'B_URL', 'A_URL', 'B_URL']);
    }));
});

describe('where a run is to be ended', () => {
  const name = 'sales';
  const served = sqlPipeline(QUERY, { name, database: 'NEW_URL', source: 'NEW_SOURCE' });
  const place = (urls: readonly string[], planned: PlannedPlace, pipelines = [served]) =>
    placeOfRun(
      {
        pipelines: new Map(pipelines.map((each) => [each.name, each])),
        hasUrl: (variable: string) => urls.includes(variable),
      },
      { pipeline: name, ...planned },
    );
  const planned = { database: 'OLD_URL', source: 'OLD_SOURCE' };
  const now = { database: 'NEW_URL', source: 'NEW_SOURCE' };

  it('is where it was planned, whatever the pipeline’s file says now', () => {
    assert.deepEqual(place(['OLD_URL', 'OLD_SOURCE', 'NEW_URL', 'NEW_SOURCE'], planned), planned);
    assert.deepEqual(place(['OLD_URL', 'OLD_SOURCE'], planned, []), planned);
    assert.deepEqual(place(['OLD_URL'], { database: 'OLD_URL' }), { database: 'OLD_URL', source: undefined });
  });

  it('is where the file says, with a plan of an older version, or where the planned variables are no more', () => {
    assert.deepEqual(place(['DATABASE_URL', 'NEW_URL', 'NEW_SOURCE'], {}), now);
    assert.deepEqual(place(['OLD_URL', 'NEW_URL', 'NEW_SOURCE'], planned), now);
    assert.deepEqual(place(['DATABASE_URL'], {}, []), { database: 'DATABASE_URL' });
  });

  it('is not known to a worker that lacks a URL, which says which', () => {
    const refused = (missing: string) => (error: unknown) =>
      error instanceof Failure && error.type === 'WorkerOutdated' && !error.final && error.message.includes(missing);
    assert.throws(() => place(['OLD_URL', 'DATABASE_URL'], planned, []), refused('OLD_SOURCE is not set'));
    assert.throws(() => place([], planned, []), refused('OLD_URL, OLD_SOURCE is not set'));
    assert.throws(() => place([], {}), refused('DATABASE_URL is not set'));
  });
});
