import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { pipelineSources } from '../../src/dev/pipeline-sources.js';
import { watchSources } from '../../src/dev/watch-sources.js';
import { until } from '../support/fill.js';

describe('watching what pipelines are made of', () => {
  let project: string;
  let ending: AbortController;
  let watching: Promise<void>;
  let seen: string[];

  const write = (path: string, text: string): void => {
    mkdirSync(join(project, path, '..'), { recursive: true });
    writeFileSync(join(project, path), text);
  };
  const told = (expected: readonly string[]): Promise<void> =>
    until(`to be told: ${expected.join(', ')}`, async () => seen.length >= expected.length).then(() => {
      assert.deepEqual(seen.splice(0).toSorted(), [...expected].toSorted());
    });

  beforeEach(async () => {
    project = mkdtempSync(join(tmpdir(), 'repave-watch-'));
    write('pipelines/a.sql', 'SELECT 1');
    write('pipelines/mart/b.ts', "import { rows } from '../../lib/rows.js';\nexport default rows;");
    write('lib/rows.ts', "import table from './table.json';\nexport const rows = table;");
    write('lib/table.json', '[]');
    write('lib/other.ts', '');
    seen = [];
    ending = new AbortController();
    const folder = join(project, 'pipelines');
    const note = async (changes: readonly { path: string; what: string }[]): Promise<void> => {
      seen.push(...changes.map(({ path, what }) => `${relative(project, path)} ${what}`));
    };
    watching = watchSources(folder, await pipelineSources(folder), note, ending.signal);
  });
  afterEach(async () => {
    ending.abort();
    await watching;
    rmSync(project, { recursive: true });
  });

  it('tells of files that change, come and go, in folders old and new', async () => {
    write('pipelines/a.sql', 'SELECT 2');
    await told(['pipelines/a.sql changed']);
    write('pipelines/new/deep/c.sql', 'SELECT 3');
    await told(['pipelines/new/deep/c.sql is new']);
    write('pipelines/new/deep/c.sql', 'SELECT 4');
    await told(['pipelines/new/deep/c.sql changed']);
    rmSync(join(project, 'pipelines', 'new'), { recursive: true });
    await told(['pipelines/new/deep/c.sql is gone']);
    // As editors save.
    write('pipelines/.a.sql.swp', 'SELECT 5');
    renameSync(join(project, 'pipelines/.a.sql.swp'), join(project, 'pipelines/a.sql'));
    await told(['pipelines/a.sql changed']);
  });

  it('tells of what they import, wherever it lies, and of that which that imports', async () => {
    write('lib/table.json', '[1]');
    await told(['lib/table.json changed']);
    write('lib/rows.ts', 'export const rows = [];');
    await told(['lib/rows.ts changed', 'lib/table.json is gone']);
    rmSync(join(project, 'lib/rows.ts'));
    await told(['lib/rows.ts is gone']);
    write('lib/rows.ts', 'export const rows = [2];');
    await told(['lib/rows.ts is new']);
  });

  it('tells nothing of a file that nobody imports, of notes, or where a file holds what it held', async () => {
    write('lib/other.ts', 'export {}');
    write('pipelines/README.md', '# notes');
    utimesSync(join(project, 'pipelines/a.sql'), 1, 1);
    write('pipelines/a.sql', 'SELECT 1');
    // Told behind all these.
    write('pipelines/z.sql', 'SELECT 1');
    await told(['pipelines/z.sql is new']);
  });

  it('tells all that changes together at once, and nothing once it has ended', async () => {
    for (let n = 0; n < 20; n++) write(`pipelines/many_${n}.sql`, `SELECT ${n}`);
    await told(Array.from({ length: 20 }, (_, n) => `pipelines/many_${n}.sql is new`));
    ending.abort();
    await watching;
    write('pipelines/a.sql', 'SELECT 9');
    assert.deepEqual(seen, []);
  });
});
