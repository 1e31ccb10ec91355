import assert from 'node:assert/strict';
import { Connection } from '@temporalio/client';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { testTemporal } from '../support/temporal.js';

describe('the servers of a test run', () => {
  let database: TestDatabase;
  before(async () => (database = await createTestDatabase()));
  after(() => database.drop());

  it('give each file a database of its own', async () => {
    const [row] = await database.sql<{ name: string; version: string }>(
      "SELECT current_database() AS name, current_setting('server_version_num') AS version",
    );
    assert.equal(row?.name, database.name);
    assert.equal(row.version.slice(0, 2), '18');
  });

  it('answer as Temporal', async () => {
    const { address } = await testTemporal();
    const connection = await Connection.connect({ address });
    const { namespaceInfo } = await connection.workflowService.describeNamespace({ namespace: 'default' });
    await connection.close();
    assert.equal(namespaceInfo?.name, 'default');
  });
});
