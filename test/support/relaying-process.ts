/**
 * A process of its own that fills one partition from another PostgreSQL, once for each count of rows. Says `filled <rows>
 * <bytes of memory at most>` at the end of each. Its databases come from the test, in variables of its own.
 */
import { openDatabase } from '../../src/warehouse/database.js';
import { relay, relayPipeline } from './source-database.js';

const { RELAY_TEST_TARGET = '', RELAY_TEST_SOURCE = '', RELAY_TEST_ROWS = '' } = process.env;

const target = await openDatabase(RELAY_TEST_TARGET, { fills: 2 });
const source = await openDatabase(RELAY_TEST_SOURCE, { fills: 2 });
for (const rows of RELAY_TEST_ROWS.split(',').map(Number)) {
  const pipeline = relayPipeline(`SELECT :date AS day, g AS n FROM generate_series(1, ${rows}) g`);
  const outcome = await relay(target, source, pipeline);
  process.stdout.write(`filled ${outcome.rows} ${process.resourceUsage().maxRSS * 1024}\n`);
}
await Promise.all([target.close(), source.close()]);
