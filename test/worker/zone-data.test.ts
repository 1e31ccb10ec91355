import assert from 'node:assert/strict';
import { loadSettings } from '../../src/settings.js';
import { createLog } from '../../src/telemetry/log.js';
import { Failure } from '../../src/failure.js';
import { registeredPipelines } from '../../src/warehouse/ledger.js';
import { registerServed, type ServedPipelines } from '../../src/worker/served-pipelines.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { sqlPipeline, withWorker } from '../support/fill.js';
import { withStatements } from '../support/statements.js';

const pipeline = sqlPipeline('SELECT :date::date AS day', {
  partition: { column: 'day', by: 'day', zone: 'America/New_York' },
});

/** What a worker that starts says of its zone data, where the server reads the zone's clock as another zone's. */
describe('a worker whose zone data are not the server’s', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL)');
  });
  after(() => test.drop());
  beforeEach(() => test.sql('TRUNCATE repave.pipeline'));

  async function start(zoneThere: string) {
    const said: { level: string; msg: string }[] = [];
    const log = createLog('info', {
      write: (line) => void said.push(JSON.parse(line) as { level: string; msg: string }),
    });
    const served: ServedPipelines = {
      pipelines: new Map([[pipeline.name, pipeline]]),
      broken: new Map(),
      unregistered: new Map(),
    };
    const settings = loadSettings({ DATABASE_URL: test.url });
    await withWorker(test, (database) =>
      withStatements(
        {
          rewrite: ({ text, values }) =>
            text.includes('AT TIME ZONE $2') ? { text, values: [values[0], zoneThere] } : undefined,
        },
        () => registerServed(served, settings, database, test.url, log),
      ),
    );
    return { said, served };
  }

  it('says nothing where they agree', async () => {
    assert.deepEqual((await start('America/New_York')).said, []);
  });

  it('warns where they differ, and serves the pipeline', async () => {
    const { said, served } = await start('America/Panama');
    assert.deepEqual(
      said.map(({ level }) => level),
      ['warn'],
    );
    assert.match(said[0]?.msg ?? '', /differ for America\/New_York: .* Update the older one/);
    assert.ok(served.pipelines.has(pipeline.name));
    await withWorker(test, async (database) => assert.equal((await registeredPipelines(database)).length, 1));
  });

  it('does not serve a pipeline in a zone that the server has not', async () => {
    const { said, served } = await start('Mars/Olympus');
    assert.match(said[0]?.msg ?? '', /is not served: The database server has no time zone "America\/New_York"/);
    assert.equal(served.pipelines.size, 0);
    assert.ok(served.broken.get(pipeline.name) instanceof Failure);
    assert.ok(served.unregistered.has(pipeline.name), 'it is tried again once somebody asks for it');
  });
});
