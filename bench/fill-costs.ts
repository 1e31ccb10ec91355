/**
 * What a fill costs, and what each setting of a pipeline adds: `npm run bench [ROWS]`, by default 1,000,000 rows of one day.
 * Starts a PostgreSQL of its own. Each line is the median of its rounds against that of the bare transaction, or of COPY
 * fed ready text, of the same rounds: both sides are printed.
 */
import { randomUUID } from 'node:crypto';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline as pipe } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { windowOf } from '../src/calendar/window.js';
import { startPostgres } from '../src/dev/postgres.js';
import { loadPipelines } from '../src/pipeline/load.js';
import type { Pipeline } from '../src/pipeline/pipeline.js';
import { openDatabase } from '../src/warehouse/database.js';
import { fill } from '../src/warehouse/fill.js';
import { migrate } from '../src/warehouse/migrate.js';

const ROWS = Number(process.argv[2] ?? 1_000_000);
const ROUNDS = 5;
const KEY = '2024-02-29';
const QUERY = 'SELECT day, id, kind, amount FROM facts WHERE day >= :date AND day < :end_date';

interface Case {
  readonly name: string;
  readonly against: 'transaction' | 'copy' | 'fill';
  readonly run: () => Promise<unknown>;
}

const HEADERS: Readonly<Record<string, readonly string[]>> = {
  plain: [],
  one_pass_checks: [
    'checks: [{ rows: { min: 1 } }, { change: { maxPercent: 50 } }, { not_null: [id, kind] }, { accepted: { kind: [a, b, c] } }, { range: { amount: { min: 0 } } }]',
  ],
  unique_by_index: ['checks: [{ unique: [id] }]'],
  unique_without_index: ['checks: [{ unique: [kind, amount, id] }]'],
  sum: ['checks: [{ sum: { amount: "SELECT sum(amount) FROM facts WHERE day >= :date AND day < :end_date" } }]'],
  sql: ['checks: [{ sql: "SELECT FROM target WHERE day >= :date AND day < :end_date AND amount < 0" }]'],
  checksum: ['checksum: true'],
  changed_rows: ['changed: rows'],
  skip_unchanged: ['skipUnchanged: true'],
  source: ['source: SOURCE_URL'],
};

async function main(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'repave-bench-'));
  // The server's own user must be able to enter it.
  await chmod(folder, 0o711);
  const server = await startPostgres({ dir: join(folder, 'postgres') });
  try {
    await measure(folder, server.url());
  } finally {
    await server.stop('immediate');
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(folder: string, url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const database = await openDatabase(url, { fills: 2, spoolDir: folder });
  const source = await openDatabase(url, { fills: 2 });
  try {
    await migrate(database);
    await client.query(`
      CREATE TABLE facts (day date NOT NULL, id bigint NOT NULL, kind text NOT NULL, amount numeric(12,2) NOT NULL);
      CREATE TABLE target (LIKE facts, PRIMARY KEY (day, id));
      INSERT INTO facts SELECT '${KEY}', n, chr(97 + n % 3), (n % 10000) / 100.0 FROM generate_series(1, ${ROWS}) n;`);
    await client.query('VACUUM ANALYZE facts');
    const pipelines = await writePipelines(join(folder, 'pipelines'));
    const filled = (name: string) => async (): Promise<void> => {
      const pipeline = pipelines.get(name);
      if (!pipeline) throw new Error(`No pipeline ${name}`);
      await fill(database, {
        pipeline,
        source,
        window: windowOf(pipeline.partition, KEY),
        owner: { run: randomUUID(), activity: '1' },
        attempt: { scheduledAt: Date.now(), number: 1 },
        timeLeftMs: 3_600_000,
        signal: new AbortController().signal,
      });
    };
    const cases: readonly Case[] = [
      { name: 'the bare transaction', against: 'transaction', run: () => bareTransaction(client) },
      { name: 'a fill', against: 'transaction', run: filled('plain') },
      { name: 'rows, change, not_null, accepted, range', against: 'fill', run: filled('one_pass_checks') },
      { name: 'unique, held by an index', against: 'fill', run: filled('unique_by_index') },
      { name: 'unique, not held by an index', against: 'fill', run: filled('unique_without_index') },
      { name: 'sum', against: 'fill', run: filled('sum') },
      { name: 'sql, one pass of its own', against: 'fill', run: filled('sql') },
      { name: 'checksum', against: 'fill', run: filled('checksum') },
      { name: 'changed: rows', against: 'fill', run: filled('changed_rows') },
      { name: 'skipUnchanged, rows that are equal', against: 'fill', run: filled('skip_unchanged') },
      {
        name: 'skipUnchanged, rows that are not',
        against: 'fill',
        run: async () => {
          await client.query('UPDATE facts SET amount = amount + 0.01 WHERE id = 1');
          return filled('skip_unchanged')();
        },
      },
      { name: 'source, another connection', against: 'fill', run: filled('source') },
      { name: 'COPY of ready text', against: 'copy', run: () => bareCopy(client) },
      { name: 'TypeScript', against: 'copy', run: filled('typescript') },
      { name: 'TypeScript, stage: false', against: 'copy', run: filled('streamed') },
    ];
    const seconds = new Map(cases.map(({ name }) => [name, [] as number[]]));
    for (let round = 0; round < ROUNDS; round++) {
      for (const { name, run } of cases) {
        await client.query('VACUUM target');
        await client.query('CHECKPOINT');
        const started = performance.now();
        await run();
        seconds.get(name)?.push((performance.now() - started) / 1000);
      }
    }
    print(cases, seconds);
  } finally {
    await Promise.all([database.close(), source.close(), client.end()]);
  }
}

async function writePipelines(folder: string): Promise<Map<string, Pipeline>> {
  await mkdir(folder);
  for (const [name, settings] of Object.entries(HEADERS)) {
    const header = ['repave', 'target: target', 'partition: { column: day, by: day }', ...settings];
    await writeFile(join(folder, `${name}.sql`), `${header.map((line) => `-- ${line}`).join('\n')}\n${QUERY}\n`);
  }
  for (const [name, setting] of [
    ['typescript', ''],
    ['streamed', 'stage: false,'],
  ]) {
    await writeFile(
      join(folder, `${name}.ts`),
      `import { definePipeline } from 'repave';
export default definePipeline({
  target: 'target', partition: { column: 'day', by: 'day' }, columns: ['day', 'id', 'kind', 'amount'], ${setting}
  *rows({ key }) {
    for (let n = 1; n <= ${ROWS}; n++) yield [key, n, 'abc'[n % 3], ((n % 10000) / 100).toFixed(2)];
  },
});`,
    );
  }
  const { pipelines, broken } = await loadPipelines(folder);
  for (const failure of broken.values()) throw failure;
  return pipelines;
}

/** What a careful person would write by hand: delete, look, insert, count, in one transaction. */
async function bareTransaction(client: pg.Client): Promise<void> {
  const window = `day >= '${KEY}' AND day < '2024-03-01'`;
  await client.query('BEGIN');
  await client.query(`DELETE FROM target WHERE ${window}`);
  await client.query(`SELECT EXISTS (SELECT FROM target WHERE ${window})`);
  await client.query(
    `INSERT INTO target (day, id, kind, amount) SELECT day, id, kind, amount FROM facts WHERE ${window}`,
  );
  await client.query(`SELECT count(*) FROM target WHERE ${window}`);
  await client.query('COMMIT');
}

/** The same with rows from a program, which here are text already. */
async function bareCopy(client: pg.Client): Promise<void> {
  const window = `day >= '${KEY}' AND day < '2024-03-01'`;
  await client.query('BEGIN');
  await client.query(`DELETE FROM target WHERE ${window}`);
  const lines = function* (): Generator<string> {
    let chunk = '';
    for (let n = 1; n <= ROWS; n++) {
      chunk += `${KEY}\t${n}\t${'abc'[n % 3]}\t${((n % 10000) / 100).toFixed(2)}\n`;
      if (chunk.length > 65_536) {
        yield chunk;
        chunk = '';
      }
    }
    if (chunk !== '') yield chunk;
  };
  await pipe(Readable.from(lines()), client.query(copyFrom('COPY target (day, id, kind, amount) FROM STDIN')));
  await client.query(`SELECT count(*) FROM target WHERE ${window}`);
  await client.query('COMMIT');
}

function print(cases: readonly Case[], seconds: ReadonlyMap<string, readonly number[]>): void {
  const base = { transaction: 'the bare transaction', copy: 'COPY of ready text', fill: 'a fill' } as const;
  const of = (name: string): number => median(seconds.get(name) ?? []);
  const rate = (value: number): string => `${Math.round(ROWS / value).toLocaleString('en')} rows/s`;
  console.log(`${ROWS.toLocaleString('en')} rows, median of ${ROUNDS} rounds`);
  for (const { name, against } of cases) {
    const own = of(name);
    const other = of(base[against]);
    const ratio =
      name === base[against] ? '' : `${(own / other).toFixed(2)} × ${base[against]} (${other.toFixed(2)} s)`;
    console.log(`${name.padEnd(42)} ${own.toFixed(2).padStart(7)} s  ${rate(own).padStart(18)}  ${ratio}`);
  }
}

function median(values: readonly number[]): number {
  return [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? NaN;
}

await main();
