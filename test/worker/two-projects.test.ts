import assert from 'node:assert/strict';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { loadSettings } from '../../src/settings.js';
import { createLog } from '../../src/telemetry/log.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { registeredPipelines, registerPipeline } from '../../src/warehouse/ledger.js';
import { disorderOf, registerAgain, registerServed, type ServedPipelines } from '../../src/worker/served-pipelines.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, sqlPipeline } from '../support/fill.js';

const log = createLog('silent');

const pipeline = (name: string, ...after: string[]): Pipeline =>
  sqlPipeline('SELECT :date AS day', { name, target: { table: name }, after: after.length > 0 ? after : undefined });

describe('pipelines of two projects, of which one comes after the other’s', () => {
  let test: TestDatabase;
  let database: Database;

  before(async () => {
    test = await createTestDatabase();
    database = await openDatabase(test.url, { fills: 1 });
    await test.sql('CREATE TABLE daily (day date NOT NULL); CREATE TABLE weekly (day date NOT NULL)');
  });
  after(async () => {
    await database.close();
    await test.drop();
  });
  beforeEach(async () => {
    await test.sql('TRUNCATE repave.pipeline');
  });

  /** A worker's pipelines, once it has named them in the ledger. */
  const registered = async (...own: Pipeline[]): Promise<ServedPipelines> => {
    const served = {
      pipelines: new Map(own.map((one) => [one.name, one])),
      broken: new Map(),
      unregistered: new Map(),
    };
    const settings = loadSettings({ DATABASE_URL: test.url }, '/nowhere');
    await registerServed(served, settings, database, test.url, log);
    return served;
  };
  const again = (served: ServedPipelines, name: string) =>
    registerAgain(
      served,
      name,
      async (one) => {
        const disorder = disorderOf(served, one, await registeredPipelines(database));
        if (disorder) throw disorder;
        return registerPipeline(database, one);
      },
      log,
    );

  it('are served whichever worker starts first, once what comes first is there', async () => {
    const served = await registered(pipeline('weekly', 'daily'));
    assert.deepEqual([...served.pipelines.keys(), ...served.broken.keys()], ['weekly']);
    const { message } = await failsAs(again(served, 'weekly'), 'InvalidPipeline');
    assert.match(message, /`after` names daily, and there is no such pipeline/);
    await registered(pipeline('daily'));
    assert.equal((await again(served, 'weekly'))?.name, 'weekly');
    assert.deepEqual([[...served.pipelines.keys()], served.broken.size], [['weekly'], 0]);
  });

  it('are never both registered in a circle, whatever each worker knew of the other', async () => {
    await registerPipeline(database, pipeline('daily', 'weekly'));
    const { message } = await failsAs(registerPipeline(database, pipeline('weekly', 'daily')), 'InvalidPipeline');
    assert.match(message, /weekly comes after daily comes after weekly\./);
    assert.deepEqual(
      (await registeredPipelines(database)).map(({ name }) => name),
      ['daily'],
    );
  });

  it('of one project take no harm from what came first before', async () => {
    await registered(pipeline('daily', 'weekly'), pipeline('weekly'));
    const served = await registered(pipeline('weekly', 'daily'), pipeline('daily'));
    assert.deepEqual([[...served.pipelines.keys()].sort(), served.broken.size], [['daily', 'weekly'], 0]);
  });
});
