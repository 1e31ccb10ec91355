/**
 * What draining costs: `npm run bench:draining [PARTITIONS]`, by default 600 days of very uneven length (nine of ten take 50 ms,
 * each tenth 2 s), 10 at once, in one run and in runs of 100 partitions: each of those ends with its lanes running dry. Starts a
 * PostgreSQL and a Temporal server of its own. Prints both sides; a real run drains about every thousand partitions.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { RepaveClient } from '../src/client.js';
import { openDatabase } from '../src/warehouse/database.js';
import { migrate } from '../src/warehouse/migrate.js';
import { type Servers, TASK_QUEUE, withServers, withWorker } from './servers.js';

const PARTITIONS = Number(process.argv[2] ?? 600);
const PER_RUN = 100;
const CONCURRENCY = 10;
const ROUNDS = 3;

const PIPELINE = `-- repave
-- target: uneven
-- partition: { column: day, by: day }
SELECT :date AS day, 1 AS units
FROM   pg_sleep(CASE WHEN (:date - date '2020-01-01') % 10 = 9 THEN 2 ELSE 0.05 END)
`;

async function run(servers: Servers): Promise<void> {
  const { folder, postgres } = servers;
  const database = await openDatabase(postgres.url(), { fills: 1 });
  await migrate(database);
  await database.close();
  const client = new pg.Client({ connectionString: postgres.url() });
  await client.connect();
  await client.query('CREATE TABLE uneven (day date PRIMARY KEY, units int NOT NULL)');
  await client.end();
  await mkdir(join(folder, 'pipelines'));
  await writeFile(join(folder, 'pipelines', 'uneven.sql'), PIPELINE);
  await withWorker(servers, measure, { REPAVE_FILLS: String(CONCURRENCY) });
}

async function measure(repave: RepaveClient): Promise<void> {
  const to = new Date(Date.parse('2020-01-01') + (PARTITIONS - 1) * 86_400_000).toISOString().slice(0, 10);
  const fill = async (partitionsPerRun: number): Promise<number> => {
    const started = performance.now();
    await repave.temporal.workflow.execute('backfill', {
      workflowId: `backfill/${randomUUID()}`,
      taskQueue: TASK_QUEUE,
      args: [{ pipeline: 'uneven', from: '2020-01-01', to, concurrency: CONCURRENCY }, { partitionsPerRun }],
    });
    return (performance.now() - started) / 1000;
  };
  await fill(PARTITIONS);
  const sides = { whole: [] as number[], drained: [] as number[] };
  for (let round = 0; round < ROUNDS; round++) {
    sides.whole.push(await fill(PARTITIONS));
    sides.drained.push(await fill(PER_RUN));
  }
  const [whole, drained] = [median(sides.whole), median(sides.drained)];
  const drains = Math.ceil(PARTITIONS / PER_RUN) - 1;
  console.log(
    `${PARTITIONS} partitions, each tenth 2 s, the others 50 ms, ${CONCURRENCY} at once; median of ${ROUNDS} rounds`,
  );
  console.log(`  one run                 ${whole.toFixed(1)} s (${sides.whole.map((s) => s.toFixed(1)).join(', ')})`);
  console.log(
    `  runs of ${PER_RUN} (${drains} drains)  ${drained.toFixed(1)} s (${sides.drained.map((s) => s.toFixed(1)).join(', ')})`,
  );
  console.log(
    `  a drain costs ${((drained - whole) / drains).toFixed(2)} s; ${(drained / whole).toFixed(2)} × with these short runs`,
  );
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

await withServers(run);
