import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { loadPipeline } from '../../src/pipeline/load.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, withWorker } from '../support/fill.js';

const EXAMPLE = fileURLToPath(new URL('../../examples/csv-files', import.meta.url));
const KEY = '2024-02-29';

describe('the example of CSV files', () => {
  let test: TestDatabase;
  let pipeline: Pipeline;
  let folder: string;
  const variable = process.env.DELIVERIES_FOLDER;

  before(async () => {
    test = await createTestDatabase();
    await test.sql(readFileSync(join(EXAMPLE, 'tables.sql'), 'utf8'));
    pipeline = await loadPipeline(join(EXAMPLE, 'pipelines'), 'deliveries');
  });
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'repave-csv-'));
    process.env.DELIVERIES_FOLDER = folder;
    await test.sql(`TRUNCATE deliveries; INSERT INTO deliveries VALUES ('${KEY}', 'old')`);
  });
  afterEach(() => {
    if (variable === undefined) delete process.env.DELIVERIES_FOLDER;
    else process.env.DELIVERIES_FOLDER = variable;
    rmSync(folder, { recursive: true });
  });
  after(() => test.drop());

  const offer = (text: string): void => writeFileSync(join(folder, `deliveries-${KEY}.csv`), text);
  const filled = () => withWorker(test, async (database) => fill(database, fillRequest(pipeline, { key: KEY })));
  const standing = async () =>
    (await test.sql('SELECT parcel, recipient, note, weight_kg::text FROM deliveries ORDER BY parcel')).map((row) =>
      Object.values(row),
    );
  const OLD = [['old', null, null, null]];

  it('reads quotes, newlines within fields, a byte order mark, and tells nothing from an empty text', async () => {
    offer(
      '\ufeffparcel,weight_kg,recipient,note\r\n' +
        'P1,1.500,"Ünal, Ada","said ""leave it""\r\nat the door"\r\n' +
        'P2,,"",\r\n' +
        'P3,0.1,"tab\there, \\N and \\.",😀\r\n' +
        '"P4",12345.678, spaces ,NULL',
    );
    assert.equal((await filled()).rows, 4);
    assert.deepEqual(await standing(), [
      ['P1', 'Ünal, Ada', 'said "leave it"\r\nat the door', '1.500'],
      ['P2', '', null, null],
      ['P3', 'tab\there, \\N and \\.', '😀', '0.100'],
      ['P4', ' spaces ', 'NULL', '12345.678'],
    ]);
  });

  it('takes a file of a header alone for a day without deliveries', async () => {
    offer('parcel,recipient\n');
    const { rows, warnings } = await filled();
    assert.deepEqual([rows, warnings], [0, ['emptied']]);
  });

  it('reads only its date’s file, and fails where there is none, naming the date', async () => {
    writeFileSync(join(folder, 'deliveries-2024-02-28.csv'), 'parcel\nother\n');
    const failure = await failsAs(filled(), 'SourceFailed');
    assert.match(failure.message, /There is no file of deliveries for 2024-02-29/);
    assert.deepEqual(await standing(), OLD);
  });

  it('fails where a file is no CSV or has a column too many, and shows nothing of what it holds', async () => {
    const rows = Array.from({ length: 5_000 }, (_, n) => `P${n},ok\n`).join('');
    offer(`parcel,recipient\n${rows}secret,secret,secret\n`);
    const width = await failsAs(filled(), 'SourceFailed');
    assert.match(width.message, /is no CSV in line 5002: CSV_RECORD_INCONSISTENT_COLUMNS/);
    offer(`parcel,recipient\n${rows}P,"secret\n`);
    const quote = await failsAs(filled(), 'SourceFailed');
    assert.match(quote.message, /CSV_QUOTE_NOT_CLOSED/);
    offer('parcel,colour\nP1,secret\n');
    const column = await failsAs(filled(), 'SchemaMismatch');
    assert.match(column.message, /column "colour" is not in public\.deliveries/);
    for (const { message } of [width, quote, column]) assert.doesNotMatch(message, /secret/);
    assert.deepEqual(await standing(), OLD);
  });
});
