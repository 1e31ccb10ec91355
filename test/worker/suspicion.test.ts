import assert from 'node:assert/strict';
import { onlyThisServer } from '../../src/dev/only-this-server.js';
import { Failure } from '../../src/failure.js';
import { loadSettings } from '../../src/settings.js';
import { Databases } from '../../src/worker/databases.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs } from '../support/fill.js';

describe('a database of a worker whose fill was lost', () => {
  let test: TestDatabase;
  let databases: Databases;

  before(async () => {
    test = await createTestDatabase();
    const settings = { ...loadSettings(onlyThisServer('127.0.0.1:1')), env: { DATABASE_URL: test.url } };
    databases = new Databases(settings, async () => undefined);
  });
  after(async () => {
    await databases.close();
    await test.drop();
  });

  /** Fails a fill of it, and says how the next one, asked for at once, ends. */
  async function afterLoss(place: (own: string) => string | undefined): Promise<unknown> {
    const lost = databases.with({ database: 'DATABASE_URL' }, async (database) => {
      throw new Failure('DatabaseUnavailable', 'lost', { place: place(database.place) });
    });
    await failsAs(lost, 'DatabaseUnavailable');
    return databases.with({ database: 'DATABASE_URL' }, async () => 'used').catch((error: Error) => error.message);
  }

  it('is above suspicion where the failure is another’s', async () => {
    assert.equal(await afterLoss(() => 'sales at elsewhere:5432'), 'used');
  });

  it('is asked itself first where the failure is its own', async () => {
    assert.equal(await afterLoss((own) => own), 'lost');
  });
});
