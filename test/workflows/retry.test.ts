import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import type { BackfillResult, Progress, Steered } from '../../src/contract.js';
import { cancelled, failureOf, Harness } from './harness.js';
import {
  days,
  eventsOf,
  failedTasks,
  fillsOf,
  gate,
  POLICY,
  runsOf,
  type Script,
  scripted,
  until,
  untilCancelled,
} from './scripted.js';

const KEYS = days('2024-01-01', 12);
describe('retryFailed', () => {
  const harness = new Harness();

  /** A backfill whose ledger keeps what has failed and was not filled since; `fill` says by try, from 1, what fails. */
  async function start(
    { page = 2, ...script }: Script,
    fails: (key: string, nth: number) => boolean | Promise<boolean>,
    ...more: unknown[]
  ) {
    const tries = new Map<string, number>();
    const ledger = new Set<string>();
    const running = new Set<string>();
    const calls = scripted({
      keys: KEYS,
      ...script,
      plan: { policy: POLICY, ...script.plan },
      fill: async (key) => {
        assert.ok(!running.has(key), `${key} is filled twice at once`);
        running.add(key);
        try {
          const nth = (tries.get(key) ?? 0) + 1;
          tries.set(key, nth);
          if (await fails(key, nth)) throw ApplicationFailure.nonRetryable(`try ${nth}`, 'DataError');
          ledger.delete(key);
        } finally {
          running.delete(key);
        }
      },
      control: {
        recordFailure: async ({ key }) => {
          ledger.add(key);
          return undefined;
        },
        failedKeys: async ({ after }) =>
          [...ledger]
            .sort()
            .filter((key) => after === undefined || key > after)
            .slice(0, page),
        ...script.control,
      },
    });
    const handle = await harness.backfill(calls, ...more);
    const latest = harness.client.workflow.getHandle(handle.workflowId);
    return {
      handle,
      calls,
      latest,
      tries,
      pull: (lever: string) => latest.executeUpdate<Steered, [unknown]>(lever, { args: [undefined] }),
      progress: () => latest.query<Progress>('progress'),
    };
  }

  it('fills what has failed again, behind the others, and counts right', async () => {
    const last = gate();
    const { calls, handle, pull, tries } = await start({ plan: { concurrency: 2 } }, async (key, nth) => {
      if (key === KEYS[11]) await last.opened;
      return KEYS.slice(0, 5).includes(key) && nth === 1;
    });
    await until(() => fillsOf(calls).includes(KEYS[11]!));
    await until(async () => (await handle.query<Progress>('progress')).failed === 5);
    await pull('retryFailed');
    await until(async () => (await handle.query<Progress>('progress')).failed === 0);
    last.open();
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.filled, result.failed, result.failures], [12, 0, []]);
    assert.deepEqual(
      KEYS.map((key) => tries.get(key)),
      KEYS.map((_, i) => (i < 5 ? 2 : 1)),
    );
    assert.equal(calls.requests('endBackfill')[0]?.outcome, 'done');
    assert.ok(calls.requests('failedKeys').every(({ run }) => run === 'run'));
    assert.deepEqual(failedTasks(await eventsOf(handle)), []);
  });

  it('counts again what fails again', async () => {
    const last = gate();
    const { calls, handle, pull } = await start({ plan: { concurrency: 2 } }, async (key) => {
      if (key === KEYS[11]) await last.opened;
      return key === KEYS[3];
    });
    await until(
      async () => (await handle.query<Progress>('progress')).failed === 1 && fillsOf(calls).includes(KEYS[11]!),
    );
    await pull('retryFailed');
    await until(() => fillsOf(calls).filter((key) => key === KEYS[3]).length === 2);
    last.open();
    const result = (await failureOf(handle)).details?.[0] as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [11, 1]);
    assert.deepEqual(result.failures, [{ key: KEYS[3], type: 'DataError', message: 'try 2' }]);
  });

  it('waits for the keys that were not tried yet', async () => {
    const held = gate();
    const { calls, handle, pull } = await start({ plan: { concurrency: 1 } }, async (key, nth) => {
      if (key === KEYS[1]) await held.opened;
      return key === KEYS[0] && nth === 1;
    });
    await until(() => fillsOf(calls).includes(KEYS[1]!));
    await pull('retryFailed');
    held.open();
    assert.equal(((await handle.result()) as BackfillResult).filled, 12);
    assert.deepEqual(fillsOf(calls), [...KEYS, KEYS[0]]);
  });

  it('goes on over continue-as-new, each key once a pass', async () => {
    const last = gate();
    const { calls, handle, latest, pull, tries } = await start(
      { plan: { concurrency: 2 }, page: 3 },
      async (key, nth) => {
        if (key === KEYS[11]) await last.opened;
        return key !== KEYS[11] && nth < 3;
      },
      { partitionsPerRun: 5 },
    );
    await until(() => fillsOf(calls).includes(KEYS[11]!));
    await pull('retryFailed');
    last.open();
    const failure = await failureOf(latest);
    const result = failure.details?.[0] as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [1, 11]);
    for (const key of KEYS.slice(0, 11)) assert.equal(tries.get(key), 2, key);
    for (const { runId } of await runsOf(harness.client, handle)) {
      const [started] = await eventsOf(harness.client.workflow.getHandle(handle.workflowId, runId));
      const inputs = started?.workflowExecutionStartedEventAttributes?.input?.payloads ?? [];
      for (const { data } of inputs) assert.ok((data?.length ?? 0) < 5_000);
    }
  });

  it('pulled again while a pass runs has another one follow', async () => {
    const [last, second] = [gate(), gate()];
    const { calls, handle, pull, tries } = await start({ plan: { concurrency: 2 } }, async (key, nth) => {
      if (key === KEYS[11]) await last.opened;
      if (key === KEYS[4] && nth === 2) await second.opened;
      return KEYS.slice(2, 5).includes(key) && nth < 3;
    });
    await until(() => fillsOf(calls).includes(KEYS[11]!));
    await until(async () => (await handle.query<Progress>('progress')).failed === 3);
    await pull('retryFailed');
    await until(() => tries.get(KEYS[4]!) === 2);
    await pull('retryFailed');
    second.open();
    await until(async () => (await handle.query<Progress>('progress')).filled === 11);
    last.open();
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [12, 0]);
    for (const key of KEYS.slice(2, 5)) assert.equal(tries.get(key), 3, key);
  });

  it('pulled while the last word is written makes it go on', async () => {
    const [ending, noted] = [gate(), gate()];
    let ends = 0;
    const { calls, handle, pull } = await start(
      {
        control: {
          endBackfill: async () => {
            if (ends++ === 0) await ending.opened;
            return { endedAt: `2024-03-0${ends}T00:00:00.000Z` };
          },
          noteBackfill: async () => noted.open(),
        },
      },
      async (key, nth) => {
        // A note that is on its way is dropped as the backfill ends.
        if (nth === 2) await noted.opened;
        return key === KEYS[5] && nth === 1;
      },
    );
    await until(() => ends === 1);
    await pull('retryFailed');
    ending.open();
    assert.equal(((await handle.result()) as BackfillResult).filled, 12);
    assert.deepEqual(
      calls.requests('endBackfill').map(({ outcome }) => outcome),
      ['incomplete', 'done'],
    );
    // Those who look at the ledger see that it goes on: the end at this time was none.
    assert.deepEqual(
      calls.requests('noteBackfill').map(({ wentOnAfter }) => wentOnAfter),
      ['2024-03-01T00:00:00.000Z'],
    );
  });

  it('is cancelled in the middle: while the page is read, and while one is filled again', async () => {
    for (const moment of ['page', 'fill'] as const) {
      const last = gate();
      const { calls, handle, pull } = await start(
        { plan: { concurrency: 2 }, control: moment === 'page' ? { failedKeys: untilCancelled } : {} },
        async (key, nth) => {
          if (key === KEYS[11]) await last.opened;
          if (nth === 2) await untilCancelled();
          return KEYS.slice(0, 3).includes(key);
        },
      );
      await until(async () => (await handle.query<Progress>('progress')).failed === 3);
      await pull('retryFailed');
      await until(() => fillsOf(calls).includes(KEYS[11]!));
      last.open();
      if (moment === 'page') await until(() => calls.requests('failedKeys').length === 1);
      else await until(() => fillsOf(calls).length >= 13);
      await handle.cancel();
      await assert.rejects(handle.result(), cancelled);
      const ran = fillsOf(calls).length;
      assert.ok(moment === 'page' ? ran === 12 : ran <= 14, `${ran} fills`);
      const [end] = calls.requests('endBackfill');
      assert.deepEqual([end?.outcome, end?.filled], ['cancelled', 9]);
      assert.deepEqual(failedTasks(await eventsOf(handle)), []);
    }
  });

  it('takes again a key whose first try ends while the page is read, once', async () => {
    // The failure is in the ledger before its child has ended: the page may have it while it runs.
    const read = gate();
    const { calls, handle, pull, tries } = await start(
      {
        plan: { concurrency: 2 },
        control: {},
      },
      async (key, nth) => {
        if (key === KEYS[11] && nth === 1) await read.opened;
        return (key === KEYS[11] || key === KEYS[0]) && nth === 1;
      },
    );
    await until(() => fillsOf(calls).includes(KEYS[11]!));
    await until(async () => (await handle.query<Progress>('progress')).failed === 1);
    await pull('pause');
    await pull('retryFailed');
    read.open();
    await until(async () => (await handle.query<Progress>('progress')).failed === 2);
    await pull('resume');
    const result = (await handle.result()) as BackfillResult;
    assert.deepEqual([result.filled, result.failed], [12, 0]);
    assert.deepEqual([tries.get(KEYS[0]!), tries.get(KEYS[11]!)], [2, 2]);
  });

  it('stop ends it in the middle', async () => {
    const [last, held] = [gate(), gate()];
    const { calls, handle, pull } = await start({ plan: { concurrency: 1 } }, async (key, nth) => {
      if (key === KEYS[11]) await last.opened;
      if (nth === 2) await held.opened;
      return key !== KEYS[11] && nth === 1;
    });
    await until(() => fillsOf(calls).includes(KEYS[11]!));
    await pull('retryFailed');
    last.open();
    await until(() => fillsOf(calls).length === 13);
    await pull('stop');
    held.open();
    const result = (await failureOf(handle)).details?.[0] as BackfillResult;
    assert.deepEqual([result.filled, result.failed, result.stopped], [2, 10, true]);
    assert.equal(fillsOf(calls).length, 13);
  });
});
