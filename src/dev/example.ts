import { createReadStream, existsSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { from as copyFrom } from 'pg-copy-streams';

/** The example's data below a project or this package. */
export function exampleFile(project: string): string {
  return join(project, 'examples', 'cdnow', 'CDNOW_master.txt');
}

/** Whether a project holds the example's data. */
export function hasExample(project: string): boolean {
  return existsSync(exampleFile(project));
}

/** Whether the database has a table `sales` of whatever kind in its search path. */
export async function hasSales(url: string): Promise<boolean> {
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ there: boolean }>("SELECT to_regclass('sales') IS NOT NULL AS there");
    return rows[0]?.there === true;
  });
}

/**
 * Puts every purchase of `file` into the table `sales`, in place of what it held, and makes the targets of
 * the example's pipelines where they are missing, empty; all in one transaction. Returns the number of purchases.
 */
export async function loadExample(url: string, file: string): Promise<number> {
  return withClient(url, async (client) => {
    await client.query('BEGIN');
    await client.query(TABLES);
    const copy = client.query(copyFrom('COPY sales (customer_id, sold_on, quantity, amount) FROM STDIN'));
    await pipeline(Readable.from(copyLines(file)), copy);
    await client.query('COMMIT');
    await client.query('ANALYZE sales');
    return copy.rowCount;
  });
}

const TABLES = `
  CREATE TABLE IF NOT EXISTS sales (
    sold_on     date          NOT NULL,
    customer_id int           NOT NULL,
    quantity    int           NOT NULL,
    amount      numeric(12,2) NOT NULL
  );
  CREATE INDEX IF NOT EXISTS sales_sold_on ON sales (sold_on);
  CREATE TABLE IF NOT EXISTS sales_summary (
    sale_date date          PRIMARY KEY,
    orders    bigint        NOT NULL,
    units     bigint        NOT NULL,
    revenue   numeric(14,2) NOT NULL
  );
  CREATE TABLE IF NOT EXISTS exchange_rates (
    day      date    NOT NULL,
    currency text    NOT NULL,
    rate     numeric NOT NULL,
    PRIMARY KEY (day, currency)
  );
  TRUNCATE sales;`;

/** The file's lines as COPY wants them. It has a header, and spaces round and between its columns. */
async function* copyLines(file: string): AsyncGenerator<string> {
  let header = true;
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    if (!header && line.trim() !== '') yield `${line.trim().split(/\s+/).join('\t')}\n`;
    header = false;
  }
}

async function withClient<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
