import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { loadPipeline } from '../../src/pipeline/load.js';
import { beginBackfill } from '../../src/warehouse/backfills.js';
import { fill } from '../../src/warehouse/fill.js';
import { recordFailure } from '../../src/warehouse/record-failure.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { fillRequest, withWorker } from '../support/fill.js';
import { makeProject, repave } from './repave.js';

const PIPELINE = `-- repave
-- target: daily
-- partition: { column: day, by: day }
-- skipUnchanged: true
-- checks: [{ rows: { min: 1 } }, { range: { n: { max: 1 } }, severity: warn }]
SELECT :date AS day, n FROM generate_series(1, 3) n
`;

describe('repave history', () => {
  let project: string;
  let database: TestDatabase;

  before(async () => {
    project = makeProject({ 'pipelines/daily.sql': PIPELINE });
    database = await createTestDatabase();
    await database.sql('CREATE TABLE daily (day date NOT NULL, n int)');
  });
  after(async () => {
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  it('says which fills wrote nothing, and what a check saw that let the rows through', async () => {
    const pipeline = await loadPipeline(join(project, 'pipelines'), 'daily');
    await withWorker(database, async (worker) => {
      for (const unchanged of [undefined, true]) {
        assert.equal((await fill(worker, fillRequest(pipeline))).unchanged, unchanged);
      }
    });
    const { code, stdout, stderr } = await repave(project, ['history', 'daily', '2024-02-29'], {
      DATABASE_URL: database.url,
    });
    assert.equal(code, 0, stderr);
    const said = stdout.split('\n').map((line) => line.trim().replace(/, in .*/, ''));
    const checks = ['✓ rows (min 1): 3 rows', '! range (n): 2 above 1'];
    const [, , ...first] = said;
    assert.deepEqual(
      first.filter((line) => !line.endsWith('attempt 1') && line !== ''),
      ['3 rows unchanged, none written', ...checks, '3 rows in place of 0', ...checks],
    );
  });

  it('says who started what, and which backfill each fill and failure was part of', async () => {
    const pipeline = await loadPipeline(join(project, 'pipelines'), 'daily');
    const [run, id, startedBy] = [randomUUID(), 'backfill/daily/2024-03-01..2024-03-02', 'ana@laptop (repave)'];
    const key = '2024-03-01';
    await withWorker(database, async (worker) => {
      await beginBackfill(worker, { run, id, pipeline: 'daily', input: {}, total: 2, startedBy });
      await fill(worker, { ...fillRequest(pipeline, { key }), backfill: run, startedBy });
      const failure = { run: randomUUID(), attempt: 3, type: 'DataError', message: 'no' } as const;
      await recordFailure(worker, { pipeline: 'daily', key, ...failure, backfill: run, startedBy });
      await fill(worker, { ...fillRequest(pipeline, { key }), startedBy: 'bob@ci' });
    });
    const env = { DATABASE_URL: database.url };
    const { code, stdout, stderr } = await repave(project, ['history', 'daily', key], env);
    assert.equal(code, 0, stderr);
    const said = stdout.split('\n').map((line) => line.trim());
    const mine = `started by ${startedBy}, part of ${id}`;
    assert.deepEqual(
      said.filter((line) => line.startsWith('started by')),
      ['started by bob@ci', mine, mine],
    );
    assert.ok(said.some((line) => /^✗ .* run .*, attempt 3$/.test(line)) && said.includes('DataError: no'), stdout);

    const { entries } = JSON.parse((await repave(project, ['history', 'daily', key, '--json'], env)).stdout) as {
      entries: Record<string, unknown>[];
    };
    assert.deepEqual(
      entries.map((entry) => [
        entry.kind,
        entry.attempt,
        entry.rows,
        entry.startedBy,
        entry.backfill,
        entry.backfillId,
      ]),
      [
        ['fill', 1, 3, 'bob@ci', null, null],
        ['failure', 3, undefined, startedBy, run, id],
        ['fill', 1, 3, startedBy, run, id],
      ],
    );
  });
});
