import assert from 'node:assert/strict';
import type { PartitionResult } from '../../src/contract.js';
import { Proxy } from '../support/proxy.js';
import type { WorkerProcess } from '../support/worker.js';
import { Installation } from './installation.js';
import { until } from './until.js';

const KEY = '2024-03-01';
const NAMES = ['killed_before', 'killed_after'] as const;
type Name = (typeof NAMES)[number];

const TABLES = `
  CREATE TABLE source (day date NOT NULL);
  INSERT INTO source SELECT '${KEY}' FROM generate_series(1, 10);
  ${NAMES.map((name) => `CREATE TABLE ${name} (day date NOT NULL);`).join('\n')}
  -- The last statement before COMMIT.
  CREATE FUNCTION hold_guard() RETURNS trigger LANGUAGE plpgsql AS
    'BEGIN PERFORM held(NEW.pipeline); RETURN NULL; END';
  CREATE TRIGGER hold AFTER INSERT ON repave.fill FOR EACH ROW EXECUTE FUNCTION hold_guard();`;

describe('a worker that is killed round the COMMIT of its fill', function () {
  this.timeout(600_000);
  let installation: Installation;
  let proxy: Proxy;
  const results = new Map<Name, PartitionResult>();

  before(async () => {
    const files = NAMES.map((name) => [
      `${name}.sql`,
      `-- repave\n-- target: ${name}\n-- partition: { column: day, by: day }\nSELECT day FROM source WHERE day >= :date AND day < :end_date\n`,
    ]);
    installation = await Installation.open({ pipelines: Object.fromEntries(files), tables: TABLES });
    const { client, database } = installation;
    proxy = await Proxy.before(database.url);
    const worker = await installation.startWorker({ databaseUrl: proxy.url(database.url) });

    await installation.hold('killed_before');
    let commits = 0;
    proxy.restart({
      onMessage: ({ sql }) => {
        if (sql !== 'COMMIT') return 'pass';
        commits += 1;
        return 'pass and freeze';
      },
    });
    const handles = await Promise.all(NAMES.map((pipeline) => client.partition({ pipeline, key: KEY })));
    await installation.heldFills(1, 'killed_before');
    const [committed] = await until('the fill whose answer is lost', async () => {
      const found = await entries('killed_after');
      return found.length > 0 && found;
    });
    assert.deepEqual([committed?.attempt, commits], [1, 1]);
    assert.deepEqual(await entries('killed_before'), []);
    await replaceKilled(worker);
    await installation.release('killed_before');
    for (const [i, name] of NAMES.entries()) results.set(name, await handles[i]!.result());
  });
  after(async () => {
    await proxy.close();
    await installation.close();
  });

  it('before it: rolled back, and filled once by another', async () => {
    const [entry, ...more] = await entries('killed_before');
    assert.deepEqual(more, []);
    assert.ok(entry && entry.attempt > 1, JSON.stringify(entry));
    assert.equal(results.get('killed_before')?.seconds, entry.seconds);
    assert.equal(await rows('killed_before'), 10);
  });

  it('between it and its answer: another finds the record, and writes nothing', async () => {
    const [entry, ...more] = await entries('killed_after');
    assert.deepEqual(more, []);
    assert.equal(entry?.attempt, 1);
    assert.equal(results.get('killed_after')?.seconds, entry.seconds);
    assert.equal(await rows('killed_after'), 10);
    assert.ok((await attempts('killed_after')) > 1);
    assert.deepEqual(await installation.database.sql('SELECT pipeline FROM repave.claim'), [], 'claims left');
  });

  /** Kills a worker; what its end of the connections had not sent is never sent. */
  async function replaceKilled(worker: WorkerProcess): Promise<void> {
    await Promise.all([worker.kill(), installation.startWorker()]);
    await proxy.close();
  }

  const entries = (name: Name) =>
    installation.database.sql<{ attempt: number; seconds: number }>(
      'SELECT attempt, seconds FROM repave.fill WHERE pipeline = $1',
      [name],
    );
  const rows = async (name: Name): Promise<number | undefined> =>
    (await installation.database.sql<{ n: number }>(`SELECT count(*)::int AS n FROM ${name}`))[0]?.n;

  /** The attempt that ended a partition's fill, as Temporal counts. */
  async function attempts(name: Name): Promise<number> {
    const { events } = await installation.temporal.workflow.getHandle(`${name}/${KEY}`).fetchHistory();
    return Math.max(0, ...(events ?? []).map((event) => event.activityTaskStartedEventAttributes?.attempt ?? 0));
  }
});
