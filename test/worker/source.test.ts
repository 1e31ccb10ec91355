import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { partitionWorkflowId } from '../../src/contract.js';
import { type Bed, makeBed } from '../support/bed.js';
import type { WorkerProcess } from '../support/worker.js';
import { until } from '../workflows/scripted.js';

/** A row each hundredth of a second, until the project has a file `go-<key>-<table>`. */
const pipeline = (table: 'spooled' | 'straight'): string => `
import { existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { definePipeline } from 'repave';

export default definePipeline({
  target: '${table}',
  partition: { column: 'day', by: 'day' },
  columns: ['day', 'n'],
  stage: ${table === 'spooled'},
  async *rows({ key, signal }) {
    try {
      for (let n = 0; !existsSync(process.env.REPAVE_PROJECT + '/go-' + key + '-${table}'); n++) {
        yield [key, n];
        await delay(10, undefined, { signal });
      }
    } finally {
      process.stderr.write('the source of ${table} has cleared up for ' + key + '\\n');
    }
  },
});
`;

describe('a worker that reads a slow source', () => {
  let bed: Bed;
  let worker: WorkerProcess;
  const own = randomBytes(6).toString('hex');
  const names = { spooled: `spooled_${own}`, straight: `straight_${own}` } as const;

  before(async () => {
    bed = await makeBed({
      files: { [`${names.spooled}.ts`]: pipeline('spooled'), [`${names.straight}.ts`]: pipeline('straight') },
    });
    await bed.database.sql('CREATE TABLE spooled AS TABLE daily; CREATE TABLE straight AS TABLE daily');
    worker = await bed.worker();
  });
  after(() => bed.close());

  for (const [kind, step] of [
    ['spooled', 'spool'],
    ['straight', 'insert'],
  ] as const) {
    const name = names[kind];

    /** What the fill's last heartbeat says. */
    const heartbeat = async (key: string): Promise<{ step?: string; rows?: number }> => {
      const { raw } = await bed.client.temporal.workflow.getHandle(partitionWorkflowId(name, key)).describe();
      const [payload] = raw.pendingActivities?.[0]?.heartbeatDetails?.payloads ?? [];
      if (!payload?.data) return {};
      return JSON.parse(Buffer.from(payload.data).toString()) as { step?: string; rows?: number };
    };

    it(`says in its heartbeats how many rows it has got so far: ${kind}`, async () => {
      const key = '2024-01-01';
      const handle = await bed.client.partition({ pipeline: name, key });
      const seen: number[] = [];
      await until(async () => {
        const { step: now, rows } = await heartbeat(key);
        if (now === step && rows && rows !== seen.at(-1)) seen.push(rows);
        return seen.length >= 3;
      });
      assert.deepEqual(
        seen,
        seen.toSorted((a, b) => a - b),
        'they grow',
      );
      writeFileSync(join(bed.project, `go-${key}-${kind}`), '');
      const { rows } = await handle.result();
      assert.ok(rows >= Math.max(...seen));
      const [found] = await bed.database.sql(`SELECT count(*)::int AS rows FROM ${kind} WHERE day = $1`, [key]);
      assert.deepEqual(found, { rows });
    });

    it(`lets the source clear up when the run is cancelled, and leaves the old rows: ${kind}`, async () => {
      const key = '2024-01-02';
      await bed.database.sql(`INSERT INTO ${kind} VALUES ($1, -1)`, [key]);
      const handle = await bed.client.partition({ pipeline: name, key });
      await until(async () => ((await heartbeat(key)).rows ?? 0) > 0);
      await handle.cancel();
      await assert.rejects(handle.result());
      await until(async () => worker.log().includes(`the source of ${kind} has cleared up for ${key}`));
      const rows = await bed.database.sql(`SELECT n::int FROM ${kind} WHERE day = $1`, [key]);
      assert.deepEqual(rows, [{ n: -1 }]);
      const { runId } = await bed.client.temporal.workflow.getHandle(partitionWorkflowId(name, key)).describe();
      assert.deepEqual(await bed.sessionsOf(runId), []);
    });
  }
});
