import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { ApplicationFailure } from '@temporalio/common';
import { MockActivityEnvironment } from '@temporalio/testing';
import { DefaultLogger } from '@temporalio/worker';
import type { ActivityDeps } from '../../src/activities/activity-deps.js';
import type { NoticeRequest } from '../../src/activities/messages.js';
import { tell } from '../../src/activities/tell.js';
import type { Notice } from '../../src/contract.js';
import { type Hook, NotTold } from '../../src/telling/hook.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { ledgerId } from '../../src/warehouse/ledger.js';
import { toldOf } from '../../src/warehouse/notices.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { Proxy } from '../support/proxy.js';
import { schema } from '../support/schemas.js';
import { gate, until } from '../workflows/scripted.js';

const isNotice = schema('notice');

describe('telling of an event', () => {
  let test: TestDatabase;
  let proxy: Proxy;
  let database: Database;
  let ledger: string;

  before(async () => {
    test = await createTestDatabase();
    proxy = await Proxy.before(test.url);
    database = await openDatabase(proxy.url(test.url), { fills: 1 });
    ledger = await ledgerId(database);
  });
  after(async () => {
    await database.close();
    await proxy.close();
    await test.drop();
  });
  afterEach(() => proxy.restart({}));

  /** From here on the ledger's server hangs up on all that it is asked. */
  const away = (): void => {
    for (const connection of proxy.connections) connection.cut();
    proxy.restart({ onMessage: () => 'cut' });
  };

  /** Opens connections to the ledger, so that none is still to be made in the seconds that an event waits for it. */
  const warm = (): Promise<unknown> =>
    until(() =>
      Promise.all([ledgerId(database), ledgerId(database)]).then(
        () => true,
        () => false,
      ),
    );

  const telling = (hooks: readonly Hook[]): ReturnType<typeof tell> => {
    const deps: ActivityDeps = {
      pipelines: new Map(),
      broken: new Map(),
      unregistered: new Map(),
      registerAgain: async () => undefined,
      withDatabase: (_place, use) => use(database),
      withSource: (_place, use) => use(undefined),
      hasUrl: () => true,
      hooks,
      hasSearchAttributes: async () => false,
    };
    return tell(deps);
  };

  const requestOf = (event: NoticeRequest['event'] = 'backfill-ended'): NoticeRequest => {
    const run = randomUUID();
    return {
      id: `${run}/${event}`,
      event,
      at: new Date().toISOString(),
      pipeline: 'sales',
      ledger,
      backfill: { id: 'backfill/sales/all', run },
      ...(event === 'heal-gave-up' ? { tries: 3 } : { outcome: 'incomplete' as const }),
      counts: { total: 3, filled: 0, failed: 3, skipped: 0, rows: 0 },
    };
  };

  /** One attempt. Returns what it hands on to the next one. */
  async function attempt(
    activity: ReturnType<typeof tell>,
    request: NoticeRequest,
    info: { attempt?: number; heartbeatDetails?: unknown } = {},
  ): Promise<{ handsOn: unknown; failure?: ApplicationFailure }> {
    const environment = new MockActivityEnvironment(info, { logger: new DefaultLogger('ERROR') });
    let handsOn = info.heartbeatDetails;
    environment.on('heartbeat', (details: unknown) => (handsOn = details));
    try {
      await environment.run(activity, request);
      return { handsOn };
    } catch (failure) {
      assert.ok(failure instanceof ApplicationFailure, String(failure));
      return { handsOn, failure };
    }
  }

  /** A hook that keeps what it is told; `refuses` is thrown instead. */
  function hookOf(kind: Hook['kind']): Hook & { readonly documents: Notice[]; refuses: Error | undefined } {
    const documents: Notice[] = [];
    return {
      kind,
      documents,
      refuses: undefined,
      tell(document) {
        documents.push(JSON.parse(document) as Notice);
        return this.refuses ? Promise.reject(this.refuses) : Promise.resolve();
      },
    };
  }

  const recorded = async ({ id }: NoticeRequest): Promise<string[]> =>
    [...(await toldOf(database, [`${id} url`, `${id} command`]))].sort();

  it('goes on while the ledger is away, with what the run knows; and is recorded once it is there', async () => {
    const [url, command] = [hookOf('url'), hookOf('command')];
    command.refuses = new NotTold('not now');
    const activity = telling([url, command]);
    const request = requestOf();
    away();
    const first = await attempt(activity, request);
    assert.equal(first.failure?.message, 'not now');
    const { backfill, counts, outcome, ledgerAway } = url.documents[0] ?? ({} as Notice);
    assert.deepEqual(
      [backfill, counts, outcome, ledgerAway],
      [request.backfill, request.counts, request.outcome, true],
    );
    assert.ok(isNotice(url.documents[0]), JSON.stringify(isNotice.errors));

    const second = await attempt(activity, request, { attempt: 2, heartbeatDetails: first.handsOn });
    assert.equal(second.failure?.message, 'not now');
    assert.deepEqual([url.documents.length, command.documents.length], [1, 2], 'whoever was told is not told again');

    proxy.restart({});
    await warm();
    command.refuses = undefined;
    const third = await attempt(activity, request, { attempt: 3, heartbeatDetails: second.handsOn });
    assert.equal(third.failure, undefined);
    assert.deepEqual([url.documents.length, command.documents.length], [1, 3]);
    assert.equal(command.documents[2]?.ledgerAway, undefined);
    assert.deepEqual(await recorded(request), [`${request.id} command`, `${request.id} url`]);
  });

  it('goes on while the ledger says nothing, and is recorded as soon as it speaks again', async () => {
    const url = hookOf('url');
    await warm();
    proxy.restart({ onMessage: ({ number }) => (number === 1 ? 'freeze' : 'pass') });
    const request = requestOf();
    const { failure } = await attempt(telling([url]), request);
    assert.deepEqual([failure, url.documents.length, url.documents[0]?.ledgerAway], [undefined, 1, true]);
    assert.deepEqual(await recorded(request), [`${request.id} url`]);
  });

  it('waits for the ledger where that alone knows whether there is anything to tell', async () => {
    const url = hookOf('url');
    const request = requestOf('heal-gave-up');
    away();
    const { failure } = await attempt(telling([url]), request);
    assert.deepEqual([failure?.type, failure?.nonRetryable, url.documents], ['DatabaseUnavailable', false, []]);
    proxy.restart({});
    await warm();
    assert.equal((await attempt(telling([url]), request)).failure, undefined);
    assert.deepEqual(url.documents, [], 'it has given up with none');
  });

  it('is not done on behalf of another installation', async () => {
    const url = hookOf('url');
    const { failure } = await attempt(telling([url]), { ...requestOf(), ledger: randomUUID() });
    assert.deepEqual([failure?.type, failure?.nonRetryable, url.documents], ['WrongLedger', false, []]);
  });

  it('is tried again whatever a hook fails by', async () => {
    const url = hookOf('url');
    url.refuses = new TypeError('geheim');
    for (const number of [1, 2, 3, 4]) {
      const { failure } = await attempt(telling([url]), requestOf(), { attempt: number });
      assert.deepEqual([failure?.type, failure?.nonRetryable], ['NotTold', false]);
      assert.match(failure?.message ?? '', /The notify url failed in a way Repave does not know \(TypeError\)/);
    }
  });

  it('takes few of a worker’s slots, though hundreds come at once and their hooks hang', async () => {
    const answers = gate();
    let hanging = 0;
    const hook: Hook = {
      kind: 'command',
      tell: () => {
        hanging += 1;
        return answers.opened;
      },
    };
    const activity = telling([hook]);
    let refused = 0;
    const all = Array.from({ length: 300 }, async () => {
      const result = await attempt(activity, requestOf());
      if (result.failure) refused += 1;
      return result;
    });
    try {
      await until(() => refused + hanging === all.length);
      assert.equal(hanging, 8);
    } finally {
      answers.open();
    }
    const ends = await Promise.all(all);
    for (const { failure } of ends) {
      if (!failure) continue;
      const delay = Number(failure.nextRetryDelay);
      assert.deepEqual(
        [failure.type, failure.nonRetryable, delay >= 1_000 && delay <= 3_000],
        ['NotTold', false, true],
      );
    }
    assert.equal((await attempt(activity, requestOf())).failure, undefined, 'and then there is a place again');
    assert.equal((await attempt(telling([]), requestOf())).failure?.type, 'WorkerOutdated');
  });
});
