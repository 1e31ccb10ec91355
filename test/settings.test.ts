import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { removeDevServers, writeDevServers } from '../src/dev/dev-file.js';
import { identify } from '../src/process-identity.js';
import { readDevServers } from '../src/settings.js';

describe('the servers of a running `repave dev`', () => {
  const servers = { databaseUrl: 'postgres://x', temporalAddress: '127.0.0.1:1', temporalUi: '', temporalCli: '' };
  let project: string;

  beforeEach(() => (project = mkdtempSync(join(tmpdir(), 'repave-settings-'))));
  afterEach(() => rmSync(project, { recursive: true }));

  function left(content: unknown): void {
    mkdirSync(join(project, '.repave'));
    writeFileSync(join(project, '.repave', 'dev.json'), JSON.stringify(content));
  }

  it('are found while its process runs', () => {
    assert.equal(readDevServers(project), undefined);
    writeDevServers(project, servers);
    assert.deepEqual(readDevServers(project), { ...identify(process.pid), ...servers });
    removeDevServers(project);
    assert.equal(readDevServers(project), undefined);
  });

  it('are not taken from a file whose process has ended and whose number another has now', () => {
    left({ ...servers, pid: process.pid, started: 'at another time' });
    assert.equal(readDevServers(project), undefined);
  });

  for (const content of [null, 5, {}, { ...servers, pid: process.pid }]) {
    it(`are not taken from a file that names no process: ${JSON.stringify(content)}`, () => {
      left(content);
      assert.equal(readDevServers(project), undefined);
    });
  }
});
