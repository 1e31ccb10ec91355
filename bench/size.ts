/**
 * What size costs: `npm run bench:size [PARTITIONS]`, by default 20,000 hours of one row, filled by one worker; then 100,000
 * hours of which all but 1,000 are filled (`only: missing`); then plan and status on a ledger of a million fills, beside the
 * same on a small one. Starts a PostgreSQL and a Temporal server of its own. Prints both sides; reads memory from /proc.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { connectRepave, type RepaveClient } from '../src/client.js';
import { loadSettings } from '../src/settings.js';
import { type Servers, withServers } from './servers.js';

const FILLED = Number(process.argv[2] ?? 20_000);
const LARGE = 100_000;
const SMALL = 100;
const LEFT = 1_000;
const FILLS = 1_000_000;
const TASK_QUEUE = 'bench';
const CONCURRENCY = 50;
const FROM = Date.parse('2014-01-01T00:00:00Z');
const REPAVE = fileURLToPath(new URL('../bin/repave.js', import.meta.url));
const PIPELINES = ['filled', 'small', 'large'] as const;

type Pipeline = (typeof PIPELINES)[number];

async function run({ folder, postgres, temporalAddress }: Servers): Promise<void> {
  const env = {
    PATH: process.env.PATH ?? '',
    DATABASE_URL: postgres.url(),
    TEMPORAL_ADDRESS: temporalAddress,
    REPAVE_TASK_QUEUE: TASK_QUEUE,
    REPAVE_PROJECT: folder,
    REPAVE_LOG_LEVEL: 'error',
  };
  const database = new pg.Client({ connectionString: postgres.url() });
  let worker: Peak | undefined;
  try {
    await database.connect();
    await writeProject(folder, database);
    await ended(spawn(process.execPath, [REPAVE, 'migrate'], { env, stdio: 'ignore' }));
    worker = new Peak(spawn(process.execPath, [REPAVE, 'worker'], { env, stdio: ['ignore', 'ignore', 'inherit'] }));
    const client = await connectRepave({ settings: loadSettings(env, folder) });
    await registered(database);
    await fillMany(client, database, worker);
    await fillTheMissing(client, database, worker);
    await lookAtMany(env, database);
    await client.close();
  } finally {
    worker?.child.kill('SIGTERM');
    await database.end();
  }
}

/** Every hour one row, so that what is measured is Repave's own work. */
async function writeProject(folder: string, database: pg.Client): Promise<void> {
  await mkdir(join(folder, 'pipelines'));
  const counts: Readonly<Record<Pipeline, number>> = { filled: FILLED, small: SMALL, large: LARGE };
  for (const name of PIPELINES) {
    await database.query(`CREATE TABLE hours_${name} (hour timestamptz PRIMARY KEY, units int NOT NULL)`);
    // A start that leaves just so many finished hours, but for the bench's own time.
    const start = name === 'filled' ? keyOf(0) : new Date(Date.now() - counts[name] * 3_600_000).toISOString();
    const text = [
      '-- repave',
      `-- target: hours_${name}`,
      '-- partition: { column: hour, by: hour }',
      `-- start: ${start.slice(0, 13)}Z`,
      'SELECT :start AS hour, 1 AS units',
      '',
    ];
    await writeFile(join(folder, 'pipelines', `${name}.sql`), text.join('\n'));
  }
}

async function fillMany(client: RepaveClient, database: pg.Client, worker: Peak): Promise<void> {
  const started = performance.now();
  const [from, to] = [keyOf(0), keyOf(FILLED - 1)];
  const backfill = await client.backfill({ pipeline: 'filled', from, to, concurrency: CONCURRENCY });
  const first = await firstFill(database, 'filled', started);
  const early = await peakWhen(worker, backfill.result(), 60_000);
  const { filled, rows } = await backfill.result();
  if (filled !== FILLED || rows !== FILLED) throw new Error(`${filled} of ${FILLED} are filled, with ${rows} rows`);
  const seconds = (performance.now() - started) / 1000;
  const runs = await chain(client, backfill.id);
  say(`${FILLED} hours, ${CONCURRENCY} at once, one worker`);
  say(
    `  first fill after ${first.toFixed(1)} s, all after ${seconds.toFixed(0)} s: ${(FILLED / seconds).toFixed(1)}/s`,
  );
  say(`  ${runs.length} runs; the longest history has ${Math.max(...runs)} events (bound: 10240)`);
  say(`  worker's peak memory after a minute ${early} MB, at the end ${await worker.megabytes()} MB`);
}

async function fillTheMissing(client: RepaveClient, database: pg.Client, worker: Peak): Promise<void> {
  for (const [name, count, left] of [
    ['small', SMALL, 0],
    ['large', LARGE, LEFT],
  ] as const) {
    await database.query(
      `INSERT INTO repave.partition (pipeline, key, outcome, rows, fingerprint, filled_at, run, attempt, fence)
       SELECT p.name, to_char(h AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24"Z"'), 'filled', 1, p.fingerprint, now(), 'seed', 1, 0
         FROM repave.pipeline p,
              generate_series(replace(p.start, 'Z', ':00Z')::timestamptz, now() - interval '1 hour', interval '1 hour') WITH ORDINALITY AS g(h, n)
        WHERE p.name = $1 AND ($3 = 0 OR n % ($2 / $3) <> 0)`,
      [name, count, left],
    );
  }
  await database.query('ANALYZE repave.partition');
  const before = await worker.megabytes();
  const started = performance.now();
  const backfill = await client.backfill({ pipeline: 'large', only: ['missing'], concurrency: CONCURRENCY });
  const first = await firstFill(database, 'large', started);
  const { filled, total } = await backfill.result();
  if (filled !== total || total < LEFT) throw new Error(`${filled} of ${total} are filled`);
  const seconds = (performance.now() - started) / 1000;
  say(`${LARGE} hours, all but ${total} of them filled, only: missing`);
  say(`  first fill after ${first.toFixed(1)} s, all ${total} after ${seconds.toFixed(0)} s`);
  say(`  worker's peak memory before ${before} MB, after ${await worker.megabytes()} MB`);
}

/** Plan and status: of a small pipeline and of a large one, then of both with a million fills beside them. */
async function lookAtMany(env: Record<string, string>, database: pg.Client): Promise<void> {
  await timings(env, 'a ledger of what was filled above');
  await database.query(
    `INSERT INTO repave.fill (pipeline, key, window_start, window_end, run, activity, attempt, fence, fingerprint,
                              rows_deleted, rows_inserted, seconds, checks, warnings, backfill)
     SELECT 'large', p.key, now(), now(), 'seed' || g, '1', 1, 0, p.fingerprint, 1, 1, 0.01, '[]', '{}', 'seed' || g
       FROM generate_series(1, $1::int) g, repave.partition p
      WHERE p.pipeline = 'large' LIMIT $2`,
    [Math.ceil(FILLS / LARGE) + 1, FILLS],
  );
  await database.query('ANALYZE repave.fill');
  await timings(env, `a ledger of ${FILLS} fills`);
}

async function timings(env: Record<string, string>, what: string): Promise<void> {
  say(what);
  for (const command of ['plan', 'status'] as const) {
    const sides: string[] = [];
    for (const pipeline of ['small', 'large'] as const) {
      const more = command === 'plan' ? ['--only', 'missing,failed,outdated'] : [];
      const seconds: number[] = [];
      let megabytes = 0;
      for (let round = 0; round < 5; round++) {
        const started = performance.now();
        const child = spawn(process.execPath, [REPAVE, command, pipeline, ...more], { env, stdio: 'ignore' });
        const peak = new Peak(child, 20);
        await ended(child);
        seconds.push((performance.now() - started) / 1000);
        megabytes = Math.max(megabytes, peak.seen);
      }
      const median = seconds.sort((a, b) => a - b)[2] ?? NaN;
      sides.push(`${pipeline === 'small' ? SMALL : LARGE} partitions ${median.toFixed(2)} s, ${megabytes} MB`);
    }
    say(`  ${command.padEnd(6)} ${sides.join(' | ')}`);
  }
}

/** A child process, whose peak memory is read from the system as long as it lives. */
class Peak {
  seen = 0;

  constructor(
    readonly child: ChildProcess,
    everyMs = 1_000,
  ) {
    const timer = setInterval(() => void this.megabytes(), everyMs);
    child.once('close', () => clearInterval(timer));
  }

  async megabytes(): Promise<number> {
    const status = await readFile(`/proc/${this.child.pid}/status`, 'utf8').catch(() => '');
    const kilobytes = Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1] ?? 0);
    this.seen = Math.max(this.seen, Math.round(kilobytes / 1024));
    return this.seen;
  }
}

/** The peak so far once `ms` have gone by, or the work has ended before. */
async function peakWhen(worker: Peak, work: Promise<unknown>, ms: number): Promise<number> {
  const pause = new Promise((resolve) => setTimeout(resolve, ms).unref());
  await Promise.race([pause, work]);
  return worker.megabytes();
}

async function firstFill(database: pg.Client, pipeline: Pipeline, started: number): Promise<number> {
  for (;;) {
    const { rows } = await database.query('SELECT FROM repave.fill WHERE pipeline = $1 LIMIT 1', [pipeline]);
    if (rows.length > 0) return (performance.now() - started) / 1000;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

async function registered(database: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await database.query<{ n: number }>('SELECT count(*)::int AS n FROM repave.pipeline');
    if (rows[0]?.n === PIPELINES.length) return;
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Events of each run of a backfill's chain. */
async function chain(client: RepaveClient, id: string): Promise<number[]> {
  const events: number[] = [];
  for await (const run of client.temporal.workflow.list({ query: `WorkflowId = "${id}"` })) {
    const { historyLength } = await client.temporal.workflow.getHandle(id, run.runId).describe();
    events.push(historyLength);
  }
  return events;
}

async function ended(child: ChildProcess): Promise<void> {
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`${child.spawnargs.slice(1).join(' ')} ended with ${String(code)}`);
}

function keyOf(hour: number): string {
  return `${new Date(FROM + hour * 3_600_000).toISOString().slice(0, 13)}Z`;
}

function say(line: string): void {
  console.log(line);
}

await withServers(run);
