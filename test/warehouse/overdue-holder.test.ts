import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import type { FillRequest } from '../../src/warehouse/fill-request.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, fills, KEY, NO_LOOKS_MS, typescriptPipeline, within } from '../support/fill.js';
import { lockWaits, untilLetGo } from '../support/lock-waits.js';
import { type StatementHooks, withStatements } from '../support/statements.js';
import { rewriteFor } from './broken-variants.js';
import { SteeredFill, thawAll } from './steered-fill.js';

/** A claim whose deadline has passed when it is made: the attempt's worker is thought frozen since. */
const OVERDUE: StatementHooks['rewrite'] = ({ kind, text, values }) =>
  kind === 'claim' ? { text: text.replace('secs => $6', 'secs => $6 * 0'), values } : undefined;

const SOON = lockWaits(200);
/** A rewriting, with short waits beside it. */
const soon =
  (rewrite: StatementHooks['rewrite']): StatementHooks['rewrite'] =>
  (statement) => {
    const waits = SOON(statement) ?? statement;
    return rewrite?.({ ...statement, ...waits }) ?? waits;
  };

describe('a window held by a frozen attempt of a run that has ended', () => {
  let test: TestDatabase;
  let frozen: Database;
  let healthy: Database;
  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL, value text NOT NULL)');
    frozen = await openDatabase(test.url, { fills: 3, watchEveryMs: NO_LOOKS_MS });
    healthy = await openDatabase(test.url, { fills: 2, watchEveryMs: NO_LOOKS_MS });
  });
  beforeEach(async () => {
    await test.sql('TRUNCATE target, repave.fill, repave.partition, repave.claim');
  });
  afterEach(thawAll);
  after(async () => {
    await frozen.close();
    await healthy.close();
    await test.drop();
  });

  /** However long the backend that is ended takes to go. */
  const patiently = (request: FillRequest) => withStatements({ rewrite: untilLetGo }, () => fill(healthy, request));

  it('past the attempt’s deadline, another run ends it in the middle of its COPY and fills', async () => {
    const holder = new SteeredFill(test, frozen, fillRequest(writes('frozen')), ['in copy'], OVERDUE);
    assert.equal(await holder.rest(), 'stopped');
    const run = randomUUID();
    await within('the healthy run', patiently(fillRequest(writes('healthy'), { run })));
    holder.release();
    assert.equal((await holder.end()).failure?.type, 'DatabaseUnavailable');
    assert.deepEqual(await values(), ['healthy']);
    assert.deepEqual(
      (await fills(test)).map((entry) => entry.run),
      [run],
    );
  });

  it('after a newer attempt of its run has claimed, another run ends it, before any deadline', async () => {
    const ended = randomUUID();
    const first = new SteeredFill(test, frozen, fillRequest(writes('first'), { run: ended, attempt: 1 }), ['in copy']);
    assert.equal(await first.rest(), 'stopped');
    // It has claimed and gets no further; then the run is terminated.
    const second = new SteeredFill(test, frozen, fillRequest(writes('second'), { run: ended, attempt: 2 }), [
      'after claim',
    ]);
    assert.equal(await second.rest(), 'stopped');
    const outcome = await within('the healthy run', patiently(fillRequest(writes('healthy'))));
    assert.equal(outcome.rows, 1);
    assert.deepEqual(await values(), ['healthy']);
    first.release();
    assert.equal((await first.end()).failure?.type, 'DatabaseUnavailable');
    second.release();
    await second.end();
  });

  it('a live attempt of another run is never ended: whoever waits gives up for now, and names it', async () => {
    const live = new SteeredFill(test, frozen, fillRequest(writes('live')), ['in copy']);
    assert.equal(await live.rest(), 'stopped');
    const conflict = await within(
      'the one that waits',
      failsAs(
        withStatements({ rewrite: SOON }, () => fill(healthy, fillRequest(writes('other')))),
        'Conflict',
      ),
    );
    assert.match(conflict.message, /held by run \S+ of target 2024-02-29 \(pid \d+, since \S+Z\)/);
    assert.ok(!conflict.final);
    live.release();
    assert.equal((await live.end()).value?.rows, 1);
    assert.deepEqual(await values(), ['live']);
  });

  it('an attempt past its deadline is refused by the guard', async () => {
    const late = new SteeredFill(test, frozen, fillRequest(writes('late')), [], OVERDUE);
    assert.equal((await late.end()).failure?.type, 'StaleAttempt');
    assert.deepEqual(await values(), []);
  });

  it('a protocol that leaves them is caught: the healthy run waits in vain', async () => {
    const overdue = new SteeredFill(test, frozen, fillRequest(writes('late')), ['in copy'], OVERDUE);
    const run = randomUUID();
    const next = '2024-03-01';
    const first = new SteeredFill(test, frozen, fillRequest(writes('a', next), { run, key: next, attempt: 1 }), [
      'in copy',
    ]);
    assert.deepEqual([await overdue.rest(), await first.rest()], ['stopped', 'stopped']);
    const second = new SteeredFill(test, frozen, fillRequest(writes('b', next), { run, key: next, attempt: 2 }), [
      'after claim',
    ]);
    assert.equal(await second.rest(), 'stopped');
    const waits = [
      new SteeredFill(test, healthy, fillRequest(writes('c')), [], soon(rewriteFor('overdue holders are left'))),
      new SteeredFill(
        test,
        healthy,
        fillRequest(writes('d', next), { key: next }),
        [],
        soon(rewriteFor('holders that a claim has replaced are left')),
      ),
    ];
    const ends = await Promise.all(waits.map(async (each) => each.end()));
    assert.deepEqual(
      ends.map(({ failure }) => failure?.type),
      ['Conflict', 'Conflict'],
    );
  });

  async function values(): Promise<string[]> {
    return (await test.sql<{ value: string }>('SELECT value FROM target')).map(({ value }) => value);
  }
});

function writes(value: string, day = KEY) {
  return typescriptPipeline(function* () {
    yield { day, value };
  });
}
