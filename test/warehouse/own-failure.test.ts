import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Failure } from '../../src/failure.js';
import { releaseClaims } from '../../src/warehouse/claim.js';
import type { Database } from '../../src/warehouse/database.js';
import { openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import type { Attempt, FillRequest } from '../../src/warehouse/fill-request.js';
import { recordOwnFailure } from '../../src/warehouse/record-failure.js';
import { runOutcomes } from '../../src/warehouse/run-outcomes.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, KEY, ledgerRows, SCHEDULED_AT, sqlPipeline } from '../support/fill.js';

const FAILURE = new Failure('CheckFailed', 'no rows');
const good = sqlPipeline('SELECT :date AS day');
const bad = sqlPipeline('SELECT :date AS day', { checks: [{ kind: 'rows', min: 2 }] });

describe('a failure that an attempt records of itself', () => {
  let test: TestDatabase;
  let database: Database;
  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL)');
    database = await openDatabase(test.url, { fills: 4 });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });

  const run = (attempt: number | Attempt, pipeline = bad, id: string = randomUUID()): FillRequest =>
    fillRequest(pipeline, { run: id, attempt });
  const failures = (request: FillRequest) =>
    test.sql('SELECT key, type, message, attempt FROM repave.failure WHERE run = $1', [request.owner.run]);

  it('is on record, and the run can claim the partition no more', async () => {
    const request = run(1);
    await failsAs(fill(database, request), 'CheckFailed');
    assert.equal(await recordOwnFailure(database, request, FAILURE), true);
    assert.deepEqual(await failures(request), [{ key: KEY, type: 'CheckFailed', message: 'no rows', attempt: 1 }]);
    assert.equal((await ledgerRows(test))[0]?.outcome, 'failed');
    await failsAs(fill(database, run(2, good, request.owner.run)), 'StaleAttempt');
    assert.equal(await recordOwnFailure(database, request, FAILURE), false);
  });

  it('is none of an attempt that a newer one has replaced, which goes on unharmed', async () => {
    const older = run(1);
    await failsAs(fill(database, older), 'CheckFailed');
    const newer = run(2, bad, older.owner.run);
    await failsAs(fill(database, newer), 'CheckFailed');
    assert.equal(await recordOwnFailure(database, older, FAILURE), false);
    assert.deepEqual(await failures(older), []);
    const { rows } = await fill(database, run(3, good, older.owner.run));
    assert.equal(rows, 1);
  });

  it('is none where an earlier attempt of the run had committed', async () => {
    const first = run(1, good);
    await fill(database, first);
    const later = run(2, bad, first.owner.run);
    // As an attempt leaves it that fails between its claim and its look.
    await test.sql(
      `INSERT INTO repave.claim (pipeline, key, run, scheduled_at, attempt, deadline) VALUES ('target', $1, $2, $3, 2, now())`,
      [KEY, first.owner.run, later.attempt.scheduledAt],
    );
    assert.equal(await recordOwnFailure(database, later, FAILURE), false);
    assert.deepEqual(await failures(first), []);
    assert.equal((await ledgerRows(test))[0]?.outcome, 'filled');
  });

  it('is told with what else the run has come to', async () => {
    const id = randomUUID();
    const at = (key: string, pipeline = good): FillRequest => fillRequest(pipeline, { run: id, key });
    const [filled, failed, begun, untouched] = ['2024-03-01', '2024-03-02', '2024-03-03', '2024-03-04'] as const;
    const { fence } = await fill(database, at(filled));
    await failsAs(fill(database, at(failed, bad)), 'CheckFailed');
    await recordOwnFailure(database, at(failed, bad), FAILURE);
    await failsAs(fill(database, at(begun, bad)), 'CheckFailed');
    const outcomes = await runOutcomes(database, 'target', [untouched, begun, failed, filled], id);
    assert.deepEqual(
      outcomes.map(({ key }) => key),
      [untouched, begun, failed, filled],
    );
    const [nothing, claimed, lost, done] = outcomes;
    assert.deepEqual([nothing?.fill, nothing?.failure, nothing?.claim], [undefined, undefined, undefined]);
    assert.equal(claimed?.claim?.closed, false);
    assert.deepEqual([lost?.failure, lost?.claim?.closed], [{ type: 'CheckFailed', message: 'no rows' }, true]);
    assert.deepEqual(
      [done?.fill?.fence, done?.fill?.rows, done?.fill?.found, done?.claim],
      [fence, 1, true, undefined],
    );
  });

  it('leaves no claim of a first attempt that gives up, and of a later one a claim that keeps earlier attempts out', async () => {
    const first = run(1);
    await failsAs(fill(database, first), 'CheckFailed');
    await releaseClaims(database, [KEY], { ...first, isFirst: true });
    assert.deepEqual(await claims(first), []);

    await failsAs(fill(database, first), 'CheckFailed');
    const second = run(2, bad, first.owner.run);
    await failsAs(fill(database, second), 'CheckFailed');
    await releaseClaims(database, [KEY], { ...first, isFirst: true });
    assert.deepEqual(await claims(first), [{ attempt: 2, over: false }]);
    await releaseClaims(database, [KEY], { ...second, isFirst: false });
    assert.deepEqual(await claims(first), [{ attempt: 2, over: true }]);
    await failsAs(fill(database, run(1, good, first.owner.run)), 'StaleAttempt');
  });

  it('keeps attempts from before a reset out, though that begins again at 1', async () => {
    const before = run({ scheduledAt: SCHEDULED_AT, number: 2 });
    const reset = run({ scheduledAt: SCHEDULED_AT + 10, number: 1 }, bad, before.owner.run);
    await failsAs(fill(database, reset), 'CheckFailed');
    await releaseClaims(database, [KEY], { ...reset, isFirst: false });
    await failsAs(fill(database, run(before.attempt, good, before.owner.run)), 'StaleAttempt');
  });

  it('lets the next attempt try again where the answer of one that gave up was lost', async () => {
    for (const attempts of [1, 2]) {
      const first = run(1);
      for (let attempt = 1; attempt <= attempts; attempt++) {
        const request = run(attempt, bad, first.owner.run);
        await failsAs(fill(database, request), 'CheckFailed');
        if (attempt === attempts) await releaseClaims(database, [KEY], { ...request, isFirst: attempt === 1 });
      }
      assert.equal((await fill(database, run(attempts + 1, good, first.owner.run))).rows, 1);
      assert.deepEqual(await claims(first), []);
    }
  });

  const claims = (request: FillRequest) =>
    test.sql('SELECT attempt, deadline < pg_catalog.clock_timestamp() AS over FROM repave.claim WHERE run = $1', [
      request.owner.run,
    ]);
});
