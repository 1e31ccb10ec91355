import assert from 'node:assert/strict';
import { bindParameters } from '../../src/pipeline/bind-parameters.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { relaySupply } from '../../src/warehouse/relay-supply.js';
import { readTarget } from '../../src/warehouse/target.js';
import { begin } from '../../src/warehouse/transaction.js';
import { createTestDatabase } from '../support/database.js';
import { fillRequest } from '../support/fill.js';
import { relayPipeline, withRelay } from '../support/source-database.js';

const SUM = `SELECT sum(g) FROM generate_series(1, 3) g CROSS JOIN pg_sleep(60)`;

describe('a target that is lost before it takes a row from another PostgreSQL', () => {
  it('while that still works out a sum, fails its fill and nothing else of the process', async () => {
    const [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    try {
      await test.sql('CREATE TABLE target (day date NOT NULL, n int)');
      const equals = bindParameters(SUM, sqlTokens(SUM), 'day');
      const pipeline = relayPipeline('SELECT :date AS day, 6 AS n', { checks: [{ kind: 'sum', column: 'n', equals }] });
      await withRelay(test, remote, async (database, source) => {
        const session = await database.session(new AbortController().signal);
        await begin(session, database, {
          applicationName: 'repave lost/1 1',
          zone: 'UTC',
          lockTimeoutMs: 3_000,
          statementTimeoutMs: 60_000,
        });
        const request = { ...fillRequest(pipeline), source };
        const supply = await relaySupply(session, request, pipeline, await readTarget(session, pipeline));
        session.destroy(new Error('The target is lost'));
        // An error that nobody listens to fails the test as well.
        await assert.rejects(supply.write(session, { table: 'target', mayDropRows: false }), /The target is lost/);
        await supply.close();
        session.release();
      });
    } finally {
      await Promise.all([test.drop(), remote.drop()]);
    }
  });
});
