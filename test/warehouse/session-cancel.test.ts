import assert from 'node:assert/strict';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, sqlPipeline, within, withWorker } from '../support/fill.js';
import { type StatementHooks, type StatementKind, withStatements } from '../support/statements.js';

const QUERY = sqlPipeline('SELECT :date AS day');

describe('a session that is cancelled', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
    await test.sql('CREATE TABLE target (day date NOT NULL)');
  });
  after(() => test.drop());

  it('as its transaction is pinned, whose answer first says which backend it has, is rolled back before its fill ends', async () => {
    const cancel = new AbortController();
    const reason = new Error('cancelled');
    const answered: StatementKind[] = [];
    const after: StatementHooks['after'] = ({ kind }) => {
      answered.push(kind);
      // The server has answered, and the session does not know it yet.
      if (kind === 'pins') cancel.abort(reason);
    };
    await withWorker(test, async (database) => {
      const filling = withStatements({ after }, () => fill(database, fillRequest(QUERY, { signal: cancel.signal })));
      await assert.rejects(within('the fill', filling), reason);
    });
    assert.deepEqual(answered.slice(-2), ['pins', 'rollback']);
  });
});
