import assert from 'node:assert/strict';
import type { Row, RowValues } from '../../src/pipeline/pipeline.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, fills, KEY, sqlPipeline, typescriptPipeline } from '../support/fill.js';
import { relayPipeline } from '../support/source-database.js';

/** The row that holds what cannot be stored, of more than one chunk. */
const BAD = 2_345;
const ROWS = 5_000;
/** Held by the bad value, and so never to be said. */
const SECRET = 'ssn-123-45-6789';

const UNSTORABLE: readonly (readonly [type: string, value: unknown])[] = [
  ['text', `${SECRET}\0`],
  ['varchar(90)', `\0${SECRET}`],
  ['text[]', ['fine', `${SECRET}\0`]],
  ['json', `"${SECRET}\0"`],
  ['jsonb', { [SECRET]: 'a\0b' }],
  ['jsonb', { [`${SECRET}\0`]: 1 }],
  ['bytea', `${SECRET}\0`],
  ['inet', `${SECRET}\0`],
];

describe('values that no column can store', () => {
  let test: TestDatabase;
  let remote: TestDatabase;
  let database: Database;
  let source: Database;

  before(async () => {
    [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    [database, source] = await Promise.all([
      openDatabase(test.url, { fills: 2 }),
      openDatabase(remote.url, { fills: 2 }),
    ]);
  });
  after(async () => {
    await Promise.all([database.close(), source.close()]);
    await Promise.all([test.drop(), remote.drop()]);
  });
  beforeEach(() => emptyDatabase(test));

  const target = (type: string) =>
    test.sql(
      `CREATE TABLE target (day date NOT NULL, "the value" ${type}); INSERT INTO target VALUES ('${KEY}', NULL)`,
    );
  /** The old row stands, and the ledger knows of nothing. */
  const untouched = async (message: string): Promise<void> => {
    assert.ok(!message.includes(SECRET), message);
    assert.deepEqual(await test.sql('SELECT "the value" FROM target'), [{ 'the value': null }]);
    assert.deepEqual(await fills(test), []);
  };

  const FORMS: Readonly<Record<string, (value: unknown) => Row | RowValues>> = {
    object: (value) => ({ day: KEY, 'the value': value }),
    array: (value) => [KEY, value],
  };
  for (const [form, row] of Object.entries(FORMS)) {
    for (const stage of [true, false]) {
      it(`U+0000 in an ${form} from TypeScript, ${stage ? 'through the spool file' : 'straight'}: DataError names column and row`, async () => {
        for (const [type, value] of UNSTORABLE) {
          await emptyDatabase(test);
          await target(type);
          const pipeline = typescriptPipeline(
            function* () {
              for (let n = 1; n <= ROWS; n++) yield row(n === BAD ? value : null);
            },
            { columns: ['day', 'the value'] },
          );
          const { message } = await failsAs(fill(database, fillRequest({ ...pipeline, stage })), 'DataError');
          assert.match(message, new RegExp(`\\brow ${BAD}, column "the value"`, 'i'), type);
          await untouched(message);
        }
      });
    }
  }

  const CAST = `SELECT :date::date AS day, CASE WHEN k = ${BAD} THEN ('"${SECRET}' || chr(92) || 'u0000"')::json END::jsonb AS "the value"
                  FROM generate_series(1, ${ROWS}) k`;
  it('U+0000 that a query of the same database would make: DataError, the value unsaid', async () => {
    await target('jsonb');
    const { message } = await failsAs(fill(database, fillRequest(sqlPipeline(CAST))), 'DataError');
    assert.match(message, /22P05/);
    await untouched(message);
  });

  it('U+0000 that another PostgreSQL has in json goes into json, and not into jsonb: DataError, the value unsaid', async () => {
    const query = CAST.replace('::jsonb', '');
    await target('jsonb');
    const into = (): Promise<unknown> => fill(database, { ...fillRequest(relayPipeline(query)), source });
    const { message } = await failsAs(into(), 'DataError');
    assert.match(message, /22P05/);
    await untouched(message);
    await test.sql('ALTER TABLE target ALTER "the value" TYPE json');
    await into();
    assert.deepEqual(await test.sql(`SELECT count(*)::int AS rows, count("the value")::int AS given FROM target`), [
      { rows: ROWS, given: 1 },
    ]);
  });
});
