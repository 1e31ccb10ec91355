import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure } from '../../src/failure.js';
import type { DevServers } from '../../src/settings.js';
import { temporalServer } from '../../src/temporal/temporal-server.js';

describe('the Temporal server', () => {
  let folder: string;
  let file: string;
  const dev: DevServers = {
    pid: process.pid,
    started: '',
    databaseUrl: 'postgres://x',
    temporalAddress: '127.0.0.1:7999',
    temporalUi: '',
    temporalCli: '',
  };

  before(() => {
    folder = mkdtempSync(join(tmpdir(), 'repave-temporal-'));
    file = join(folder, 'temporal.toml');
    writeFileSync(
      file,
      '[profile.default]\naddress = "default:7233"\nnamespace = "ops"\n[profile.cloud]\naddress = "cloud:7233"\nnamespace = "prod"\napi_key = "hunter2"\n',
    );
  });
  after(() => rmSync(folder, { recursive: true }));

  /** An environment in which no file of this machine's is found. */
  function named(env: Record<string, string> = {}, servers?: DevServers) {
    return temporalServer({ env: { XDG_CONFIG_HOME: join(folder, 'none'), HOME: folder, ...env }, dev: servers });
  }

  it('is on this machine where nothing names another', () => {
    const { address, namespace, named: isNamed } = named();
    assert.deepEqual([address, namespace, isNamed], ['localhost:7233', 'default', false]);
  });

  it('is a running `repave dev`’s where the environment names none', () => {
    assert.equal(named({}, dev).address, '127.0.0.1:7999');
    assert.equal(named({}, dev).named, true);
    assert.equal(named({ TEMPORAL_NAMESPACE: 'other' }, dev).namespace, 'other');
  });

  it('is the environment’s before a running `repave dev`’s', () => {
    const { address, namespace, connectionOptions } = named(
      { TEMPORAL_ADDRESS: 'here:1', TEMPORAL_NAMESPACE: 'n' },
      dev,
    );
    assert.deepEqual([address, namespace, connectionOptions.address], ['here:1', 'n', 'here:1']);
    assert.equal(named({ TEMPORAL_ADDRESS: 'here:1' }).named, true);
  });

  it('is a profile’s, with its namespace and key', () => {
    const { address, namespace, connectionOptions } = named(
      { TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'cloud' },
      dev,
    );
    assert.deepEqual([address, namespace], ['cloud:7233', 'prod']);
    assert.equal(connectionOptions.apiKey, 'hunter2');
    assert.equal(named({ TEMPORAL_CONFIG_FILE: file }).named, true, 'the default profile’s');
    assert.equal(connectionOptions.tls, true);
    assert.equal(named({ TEMPORAL_CONFIG_FILE: file }).namespace, 'ops');
  });

  it('refuses a profile that is not there, by name, and a file it cannot read, without quoting it', () => {
    assert.throws(
      () => named({ TEMPORAL_CONFIG_FILE: file, TEMPORAL_PROFILE: 'cluod' }),
      (error: unknown) => error instanceof Failure && error.type === 'InvalidInput' && error.message.includes('cluod'),
    );
    const torn = join(folder, 'torn.toml');
    writeFileSync(torn, '[profile.default]\napi_key = "hunter2');
    assert.throws(
      () => named({ TEMPORAL_CONFIG_FILE: torn }),
      (error: unknown) =>
        error instanceof Failure && error.type === 'InvalidInput' && !error.message.includes('hunter2'),
    );
  });
});
