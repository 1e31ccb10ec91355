import assert from 'node:assert/strict';
import type { Grid, Granularity } from '../../src/calendar/calendar.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { inTheWayOf, inTheWayText } from '../../src/warehouse/in-the-way.js';
import type { RegisteredPipeline } from '../../src/warehouse/ledger.js';
import { comesAfterOf, upstreamDigests } from '../../src/warehouse/upstream.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { registered } from '../support/registered.js';
import { withStatements } from '../support/statements.js';

const DAY = '2024-02-03';
const DAYS: Grid = { by: 'day', zone: 'UTC' };

const pipeline = (name: string, by: Granularity, ...after: readonly string[]) => registered(name, by, after);

/** Layers of three pipelines, each of which comes after all of the layer before; the last of them is for the test's own. */
const layers = (count: number): RegisteredPipeline[] => {
  const names = (layer: number): string[] => (layer < 0 ? [] : [0, 1, 2].map((place) => `p${layer}_${place}`));
  return Array.from({ length: count }, (_, layer) =>
    names(layer).map((name) => pipeline(name, 'day', ...names(layer - 1))),
  ).flat();
};

describe('what stands in the way of a partition', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 1 });
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    await test.sql('TRUNCATE repave.partition');
  });

  /** Fills partitions of pipelines, of which each is behind those it comes after. */
  const fill = async (registered: readonly RegisteredPipeline[], keys: readonly string[]) => {
    for (const { name, by, zone, after } of registered) {
      const before = comesAfterOf({ by: by as Granularity, zone }, after, registered);
      const digests = before && (await upstreamDigests(database, before, keys));
      for (const key of keys)
        await test.sql(
          `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence, fill, upstream)
           VALUES ($1, $2, 'filled', 1, 'v1:now', now(), 'r', 1, 1, 1, $3)`,
          [name, key, digests?.get(key) ?? null],
        );
    }
  };
  const inTheWay = async (
    registered: readonly RegisteredPipeline[],
    after: readonly string[],
    key = DAY,
    grid = DAYS,
  ) => {
    const reasons = await inTheWayOf({ database, registered }, { grid, after }, { from: key, to: key });
    return inTheWayText(reasons.get(key) ?? []);
  };

  it('is found by a look at each pipeline above, by however many ways that is reached', async () => {
    const registered = layers(5);
    await fill(registered, [DAY]);
    const after = registered.slice(-3).map(({ name }) => name);
    let statements = 0;
    const hooks = { before: async () => void (statements += 1) };
    await withStatements(hooks, async () => assert.equal(await inTheWay(registered, after), ''));
    assert.ok(statements >= registered.length && statements <= 2 * registered.length, String(statements));
    await test.sql(`UPDATE repave.partition SET outcome = 'failed' WHERE pipeline = 'p0_1'`);
    assert.equal(await inTheWay(registered, after), 'p0_1 2024-02-03 (failed)');
  });

  it('is judged for each partition by what overlaps it, where one way reaches further than another', async () => {
    const registered = [pipeline('days', 'day'), pipeline('months', 'month', 'days'), pipeline('same', 'day', 'days')];
    await fill(registered.slice(0, 1), ['2024-02-03', '2024-02-04']);
    assert.equal(await inTheWay(registered, ['days']), '');
    assert.equal(await inTheWay(registered, ['same', 'days']), 'same 2024-02-03 (missing)');
    assert.equal(await inTheWay(registered, ['months', 'days']), 'months 2024-02 (missing)');
    assert.equal(
      await inTheWay(registered, ['days'], '2024-02', { by: 'month', zone: 'UTC' }),
      'days 2024-02-01 (missing), days 2024-02-02 (missing), days 2024-02-05 (missing) and 24 more',
    );
  });

  it('is all that is in a circle, and what nobody has registered: for good', async () => {
    const registered = [pipeline('a', 'day', 'b'), pipeline('b', 'day', 'a'), pipeline('c', 'day', 'b', 'gone')];
    await fill([pipeline('c', 'day')], [DAY]);
    assert.equal(await inTheWay(registered, ['a']), 'a (in a circle)');
    assert.equal(await inTheWay(registered, ['gone', 'a']), 'gone (not registered), a (in a circle)');
  });
});
