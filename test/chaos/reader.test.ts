import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { WorkflowHandle } from '@temporalio/client';
import pg from 'pg';
import { Installation } from './installation.js';
import { until } from './until.js';

const KEY = '2024-03-01';
const FILLS = 50;
/** Every tenth fill's worker is killed between its DELETE and its COMMIT. */
const KILLED = (fill: number): boolean => fill % 10 === 5;
const SIZES = [1_000, 1_500] as const;

const TABLES = `
  CREATE TABLE source (day date NOT NULL, size int NOT NULL);
  INSERT INTO source VALUES ('${KEY}', ${SIZES[0]});
  CREATE TABLE watched (day date NOT NULL, number int NOT NULL);`;

const PIPELINE = `-- repave
-- target: watched
-- partition: { column: day, by: day }
SELECT day, number
FROM   held('query') CROSS JOIN source CROSS JOIN LATERAL generate_series(1, size) AS number
WHERE  day >= :date AND day < :end_date
`;

describe('who reads a day while it is filled fifty times, with workers killed between DELETE and COMMIT', function () {
  this.timeout(600_000);
  let installation: Installation;
  const pipeline = 'watched';

  before(async () => {
    installation = await Installation.open({ pipelines: { [`${pipeline}.sql`]: PIPELINE }, tables: TABLES });
    await Promise.all([installation.startWorker(), installation.startWorker()]);
  });
  after(() => installation.close());

  it('sees the old number or the new', async () => {
    await (await fill(0)).result();
    const reader = await Reader.start(installation);
    const runs = new Map<string, WorkflowHandle>();
    let kills = 0;
    for (let number = 1; number <= FILLS; number++) {
      await installation.database.sql('UPDATE source SET size = $1', [SIZES[number % 2]]);
      if (KILLED(number)) await installation.hold('query');
      const handle = await fill(number);
      runs.set(handle.firstExecutionRunId, handle);
      if (KILLED(number)) {
        // Perhaps that of an earlier run, killed before, which tries again now.
        const [open] = await installation.heldFills();
        const victim = open && (await installation.workerOf(runs.get(open.run)?.workflowId ?? '', open.run));
        assert.ok(victim, 'the held fill has a worker');
        await reader.reads(20);
        await Promise.all([victim.kill(), installation.startWorker()]);
        await installation.release('query');
        kills += 1;
      } else {
        await handle.result();
      }
    }
    await Promise.all([...runs.values()].map((handle) => handle.result()));
    const seen = await reader.stop();
    assert.deepEqual([...seen].sort(), [...SIZES]);
    assert.equal(kills, 5);

    const entries = await installation.database.sql<{ rows: number; attempt: number }>(
      'SELECT rows_inserted::int AS rows, attempt FROM repave.fill ORDER BY id',
    );
    assert.equal(entries.length, FILLS + 1);
    // One run may have been killed more than once.
    const lost = entries.reduce((sum, { attempt }) => sum + attempt - 1, 0);
    assert.ok(lost >= kills, `each of ${kills} kills hit an open fill, and ${lost} attempts were lost`);
    assert.deepEqual(
      await installation.database.sql(
        'SELECT rows::int AS rows, (SELECT count(*)::int FROM watched) AS there FROM repave.partition',
      ),
      [{ rows: entries.at(-1)?.rows, there: entries.at(-1)?.rows }],
    );
  });

  /** Starts a fill under an id of its own, so that it need not wait for one that was killed. */
  function fill(number: number) {
    return installation.temporal.workflow.start('partition', {
      taskQueue: installation.taskQueue,
      workflowId: `${pipeline}/${KEY}/${number}/${randomUUID()}`,
      args: [{ pipeline, key: KEY }],
    });
  }
});

/** Counts the day's rows over and over. */
class Reader {
  readonly #seen = new Set<number>();
  #reads = 0;
  #stopped = false;
  #reading: Promise<void> = Promise.resolve();

  static async start(installation: Installation): Promise<Reader> {
    const reader = new Reader();
    const client = new pg.Client({ connectionString: installation.database.ownerUrl });
    await client.connect();
    reader.#reading = reader.#read(client);
    reader.#reading.catch(() => undefined);
    return reader;
  }

  async #read(client: pg.Client): Promise<void> {
    try {
      while (!this.#stopped) {
        const { rows } = await client.query<{ n: number }>('SELECT count(*)::int AS n FROM watched');
        this.#seen.add(rows[0]?.n ?? -1);
        this.#reads += 1;
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    } finally {
      await client.end();
    }
  }

  /** Waits until it has read so many times more. */
  async reads(more: number): Promise<void> {
    const enough = this.#reads + more;
    await until(`${more} more reads`, async () => this.#reads >= enough);
  }

  /** The numbers it saw. */
  async stop(): Promise<ReadonlySet<number>> {
    this.#stopped = true;
    await this.#reading;
    return this.#seen;
  }
}
