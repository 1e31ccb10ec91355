import assert from 'node:assert/strict';
import { CancelledFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { passedClock, type PassedClock } from '../../src/activities/passed-clock.js';

const SECOND_MS = 1_000;

type Clocked = Parameters<typeof passedClock>[0];

describe('the clock that a schedule’s run is planned with', () => {
  const from = (ms: number): string => new Date(Date.now() + ms).toISOString();
  /** Of a run that was due so long from now by this machine's clock, and that Temporal started so long after that. */
  function clock(
    dueIn: number,
    startedAfter = 0,
  ): { readonly answer: Promise<PassedClock>; readonly cancel: () => void; readonly due: Date } {
    const asOf = from(dueIn);
    const startedAt = new Date(Date.parse(asOf) + startedAfter).toISOString();
    const environment = new MockActivityEnvironment();
    const answer = environment.run<[Clocked], PassedClock, typeof passedClock>(passedClock, {
      asOf,
      scheduledBy: 'repave/sales',
      startedAt,
    });
    return { answer, cancel: () => environment.cancel('CANCELLED'), due: new Date(asOf) };
  }

  it('has passed the time it was due, where this machine is a little behind', async () => {
    const { answer, due } = clock(300);
    const { now, notes } = await answer;
    assert.ok(now >= due, `${now.toISOString()} is before ${due.toISOString()}`);
    assert.deepEqual(notes, []);
  });

  it('is the time it was due where this machine is far behind, and says so', async () => {
    const { answer, due } = clock(3_600 * SECOND_MS, 5 * SECOND_MS);
    const { now, notes } = await answer;
    assert.deepEqual(now, due);
    assert.match(
      notes.join(),
      /^The clock of the worker that planned this is at least 60 min behind Temporal's server/,
    );
  });

  it('is this machine’s of a run that was asked for ahead of its time, and of one that no schedule has started', async () => {
    const { answer, due } = clock(3_600 * SECOND_MS, -3_600 * SECOND_MS);
    assert.ok((await answer).now < due);
    const asOf = from(3_600 * SECOND_MS);
    const own = await new MockActivityEnvironment().run<[Clocked], PassedClock, typeof passedClock>(passedClock, {
      asOf,
    });
    assert.ok(own.now < new Date(asOf));
  });

  it('is waited for no longer than until a cancel', async () => {
    const { answer, cancel } = clock(59 * SECOND_MS);
    cancel();
    await assert.rejects(answer, CancelledFailure);
  });
});
