/**
 * What `batch` saves: `npm run bench:batches [PARTITIONS]`, by default 365 days of one row each, filled by the same worker with
 * no batch, and with batches of 10 and 50. Starts a PostgreSQL and a Temporal server of its own. Prints seconds, partitions a
 * second and the events of all histories, each side of each.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import pg from 'pg';
import type { RepaveClient } from '../src/client.js';
import { openDatabase } from '../src/warehouse/database.js';
import { migrate } from '../src/warehouse/migrate.js';
import { type Servers, withServers, withWorker } from './servers.js';

const PARTITIONS = Number(process.argv[2] ?? 365);
const BATCHES = [1, 10, 50] as const;
const ROUNDS = 3;

async function run(servers: Servers): Promise<void> {
  await makeTables(servers.postgres.url());
  await writePipelines(join(servers.folder, 'pipelines'));
  await withWorker(servers, measure);
}

async function makeTables(url: string): Promise<void> {
  const database = await openDatabase(url, { fills: 1 });
  await migrate(database);
  await database.close();
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  for (const batch of BATCHES)
    await client.query(`CREATE TABLE days_${batch} (day date PRIMARY KEY, units int NOT NULL)`);
  await client.end();
}

async function writePipelines(folder: string): Promise<void> {
  await mkdir(folder);
  for (const batch of BATCHES) {
    await writeFile(
      join(folder, `days_${batch}.sql`),
      [
        '-- repave',
        `-- target: days_${batch}`,
        '-- partition: { column: day, by: day }',
        `-- batch: ${batch}`,
        '-- concurrency: 4',
        'SELECT :date AS day, 1 AS units',
        '',
      ].join('\n'),
    );
  }
}

async function measure(client: RepaveClient): Promise<void> {
  const from = '2020-01-01';
  const to = new Date(Date.parse(from) + (PARTITIONS - 1) * 86_400_000).toISOString().slice(0, 10);
  const seconds = new Map(BATCHES.map((batch) => [batch, [] as number[]]));
  const events = new Map<number, number>();
  for (let round = 0; round <= ROUNDS; round++) {
    for (const batch of BATCHES) {
      const started = performance.now();
      const pipeline = `days_${batch}`;
      const backfill = await client.backfill({ pipeline, from, to });
      const { filled } = await backfill.result();
      if (filled !== PARTITIONS) throw new Error(`${filled} of ${PARTITIONS} are filled`);
      // The first round warms both servers and the worker up.
      if (round > 0) seconds.get(batch)?.push((performance.now() - started) / 1000);
      if (round === 0) events.set(batch, await historyEvents(client, pipeline));
    }
  }
  const median = (batch: (typeof BATCHES)[number]): number =>
    [...(seconds.get(batch) ?? [])].sort((a, b) => a - b)[Math.floor(ROUNDS / 2)] ?? NaN;
  console.log(`${PARTITIONS} partitions of one row, median of ${ROUNDS} rounds`);
  for (const batch of BATCHES) {
    const own = median(batch);
    const ratio = batch === 1 ? '' : `${(own / median(1)).toFixed(2)} × no batch (${median(1).toFixed(2)} s)`;
    console.log(
      `batch ${String(batch).padEnd(4)} ${own.toFixed(2).padStart(7)} s ${(PARTITIONS / own).toFixed(0).padStart(6)} partitions/s ${String(events.get(batch)).padStart(7)} events  ${ratio}`,
    );
  }
}

/** Events of a pipeline's workflows so far, its backfill's and its children's. */
async function historyEvents(client: RepaveClient, pipeline: string): Promise<number> {
  let events = 0;
  for await (const { workflowId, runId, historyLength } of client.temporal.workflow.list()) {
    if (!workflowId.startsWith(`${pipeline}/`) && !workflowId.startsWith(`backfill/${pipeline}/`)) continue;
    events += historyLength ?? (await client.temporal.workflow.getHandle(workflowId, runId).describe()).historyLength;
  }
  return events;
}

await withServers(run);
