/**
 * A process of its own that fills one partition from a TypeScript source, through the spool or straight, and then, where it
 * is told to, a source that stalls for ever. Says `given <rows>` when the source stalls and `filled <rows> <bytes of memory
 * at most>` at the end. Its database and folder come from the test, in variables of its own.
 */
import { randomUUID } from 'node:crypto';
import type { Row } from '../../src/pipeline/pipeline.js';
import { openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { fillRequest, typescriptPipeline } from './fill.js';

const {
  FILL_TEST_URL: url = '',
  FILL_TEST_DIR: spoolDir,
  FILL_TEST_ROWS: rows = '',
  FILL_TEST_WIDTH: width = '500',
  FILL_TEST_STALLS: stalls,
  FILL_TEST_STRAIGHT: straight,
} = process.env;

const note = 'x'.repeat(Number(width));

async function* source(key: string, count: number): AsyncGenerator<Row> {
  for (let n = 0; n < count; n++) {
    yield { day: key, n, note: `${n} ${note}` };
    // As rows come from a network: not all in one turn of the event loop.
    if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  if (stalls) {
    process.stdout.write(`given ${count}\n`);
    await new Promise(() => setInterval(() => undefined, 1000));
  }
}

const database = await openDatabase(url, { fills: 2, spoolDir });
for (const count of rows.split(',').map(Number)) {
  const pipeline = typescriptPipeline(({ key }) => source(key, count), { stage: !straight });
  const outcome = await fill(database, fillRequest(pipeline, { run: randomUUID() }));
  process.stdout.write(`filled ${outcome.rows} ${process.resourceUsage().maxRSS * 1024}\n`);
}
await database.close();
