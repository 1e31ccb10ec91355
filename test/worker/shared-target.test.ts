import assert from 'node:assert/strict';
import { createTestDatabase } from '../support/database.js';
import { createProject, startWorker } from '../support/worker.js';
import { uniqueQueue } from '../support/workflow.js';

const file = (scope: string, tenant: string) => `-- repave
-- target: sales
-- partition: { column: day, by: day }
${scope}
SELECT :date AS day, '${tenant}' AS tenant, 1 AS n
`;

it('a worker serves pipelines of one target whose scopes are disjoint, and none that would overwrite another’s rows', async () => {
  const database = await createTestDatabase();
  try {
    await database.sql('CREATE TABLE sales (day date NOT NULL, tenant text NOT NULL, n int)');
    const project = await createProject({
      'acme.sql': file('-- scope: { tenant: acme }', 'acme'),
      'globex.sql': file('-- scope: { tenant: globex }', 'globex'),
      'twice.sql': file('-- scope: { tenant: globex }', 'globex'),
      'whole.sql': file('--', 'acme'),
    });
    const worker = await startWorker({ databaseUrl: database.url, taskQueue: uniqueQueue(), project });
    const log = worker.log();
    await worker.stop();
    assert.deepEqual(await database.sql('SELECT name, scope FROM repave.pipeline ORDER BY name'), [
      { name: 'acme', scope: { tenant: 'acme' } },
      { name: 'globex', scope: { tenant: 'globex' } },
    ]);
    assert.match(
      log,
      /Pipeline twice is not served: public\.sales is already the target of globex: its scope \(tenant = /,
    );
    assert.match(log, /Pipeline whole is not served: public\.sales is already the target of acme/);
    assert.match(log, /"pipelines":\["acme","globex"\]/);
  } finally {
    await database.drop();
  }
});
