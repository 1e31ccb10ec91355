import assert from 'node:assert/strict';
import { fill } from '../../src/warehouse/fill.js';
import { zoneDisagreement } from '../../src/warehouse/zone-agreement.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, sqlPipeline, withWorker } from '../support/fill.js';
import { setRoleDefaults } from '../support/superuser.js';
import { withStatements } from '../support/statements.js';

const NOW = new Date('2024-06-01T00:00:00Z');

/** Has the server answer for another zone than was asked, as one whose zone data are of another age would. */
const asThough = (zone: string, work: () => Promise<string | undefined>): Promise<string | undefined> =>
  withStatements(
    {
      rewrite: ({ text, values }) =>
        text.includes('AT TIME ZONE $2') ? { text, values: [values[0], zone] } : undefined,
    },
    work,
  );

describe('zone data of the worker and of the server', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(() => test.drop());

  it('agree for zones of every kind, whatever the role’s own TimeZone', async () => {
    await setRoleDefaults(test, { timezone: `'Asia/Tokyo'` });
    await withWorker(test, async (database) => {
      for (const zone of ['UTC', 'America/New_York', 'Australia/Lord_Howe', 'Asia/Kathmandu', 'America/St_Johns'])
        assert.equal(await zoneDisagreement(database, zone, NOW), undefined, zone);
    });
  });

  it('are said to differ, with the first instant and both offsets', async () => {
    await withWorker(test, async (database) => {
      // Panama has New York's winter time all year: they part at the second that New York's clock goes forward.
      const said = await asThough('America/Panama', () => zoneDisagreement(database, 'America/New_York', NOW));
      assert.match(
        said ?? '',
        /differ for America\/New_York: at 2024-03-10T07:00:00\.000Z its clock is UTC-04:00 here and UTC-05:00 there/,
      );
      // The same the other way round: a change that only the server knows of.
      const other = await asThough('America/New_York', () => zoneDisagreement(database, 'America/Panama', NOW));
      assert.match(other ?? '', /at 2024-03-11T00:00:00\.000Z its clock is UTC-05:00 here and UTC-04:00 there/);
    });
  });

  it('where the server has no such zone: InvalidPipeline says so', async () => {
    await withWorker(test, async (database) => {
      const failure = await failsAs(
        asThough('Mars/Olympus', () => zoneDisagreement(database, 'Europe/Kyiv', NOW)),
        'InvalidPipeline',
      );
      assert.match(failure.message, /server has no time zone "Europe\/Kyiv"/);
    });
  });

  it('where the server has no such zone: a fill says what is the matter', async () => {
    await test.sql('CREATE TABLE target (day date NOT NULL)');
    const pipeline = sqlPipeline('SELECT :date::date AS day', {
      partition: { column: 'day', by: 'day', zone: 'Europe/Kyiv' },
    });
    await withWorker(test, async (database) => {
      const unknown = withStatements(
        {
          rewrite: ({ kind, text, values }) =>
            kind === 'pins'
              ? { text, values: values.map((value) => (value === 'Europe/Kyiv' ? 'Mars/Olympus' : value)) }
              : undefined,
        },
        () => fill(database, fillRequest(pipeline)),
      );
      assert.match((await failsAs(unknown, 'InvalidPipeline')).message, /22023.*no time zone of the name/);
    });
  });
});
