import assert from 'node:assert/strict';
import { MockActivityEnvironment } from '@temporalio/testing';
import type { ActivityDeps } from '../../src/activities/activity-deps.js';
import { nextBatches, nextKeys, PAGE_SIZE } from '../../src/activities/next-keys.js';
import type { Cursor, KeyRange } from '../../src/activities/messages.js';
import { sqlPipeline } from '../support/fill.js';

const pipeline = sqlPipeline('SELECT :date AS day');
const deps: ActivityDeps = {
  pipelines: new Map([[pipeline.name, pipeline]]),
  broken: new Map(),
  unregistered: new Map(),
  registerAgain: async () => undefined,
  withDatabase: () => assert.fail('a range needs no database'),
  hasUrl: () => false,
  hooks: [],
  hasSearchAttributes: () => Promise.resolve(false),
  withSource: () => assert.fail('a range needs no database'),
};

/** What an activity answers in a context of its own. */
async function answer<Request, Answer>(
  activity: (request: Request) => Promise<Answer>,
  request: Request,
): Promise<Answer> {
  return new MockActivityEnvironment().run<[Request], Answer, typeof activity>(activity, request);
}

type Page = readonly (readonly string[])[];

/** All pages of a range, as a backfill asks for them. */
async function pages(range: KeyRange, batch: number): Promise<Page[]> {
  const asked: Page[] = [];
  let cursor: Cursor = { taken: 0 };
  for (;;) {
    const request = { pipeline: pipeline.name, ledger: 'l', range, batch, cursor };
    const page = await answer(nextBatches(deps), request);
    if (page.length === 0) return asked;
    asked.push(page);
    cursor = { taken: cursor.taken + page.flat().length, key: page.at(-1)?.at(-1) };
  }
}

describe('the pages of a backfill in batches', () => {
  for (const order of ['oldest-first', 'newest-first'] as const) {
    it(`have every key once, and no batch that a page has cut: ${order}`, async () => {
      const range: KeyRange = { from: '2020-01-01', to: '2023-12-31', order };
      const all = (await pages(range, 7)).flat();
      const keys: string[] = [];
      for (let cursor: Cursor = { taken: 0 }; ; cursor = { taken: keys.length, key: keys.at(-1) }) {
        const request = { pipeline: pipeline.name, ledger: 'l', range, cursor };
        const page = await answer(nextKeys(deps), request);
        if (page.length === 0) break;
        keys.push(...page);
      }
      assert.equal(keys.length, 1461);
      assert.deepEqual(all.flat(), keys);
      assert.deepEqual([...new Set(all.slice(0, -1).map(({ length }) => length))], [7]);
      assert.ok(all.length > PAGE_SIZE / 7);
    });
  }
});
