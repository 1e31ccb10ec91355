import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Failure } from '../../src/failure.js';
import { loadSettings } from '../../src/settings.js';
import { commandHook } from '../../src/telling/command-hook.js';
import { type Hook, NotTold } from '../../src/telling/hook.js';
import { notifyHooks } from '../../src/telling/hooks.js';
import { signature } from '../../src/telling/signature.js';
import { urlHook } from '../../src/telling/url-hook.js';
import { until } from '../chaos/until.js';
import { type Delivery, isSigned, type Receiver, startReceiver } from '../support/receiver.js';

const SECRET = 'geheim';
const DOCUMENT = JSON.stringify({ id: 'run/backfill-ended', reason: 'Übermorgen' });
const never = new AbortController().signal;

async function refuses(hook: Hook, message: RegExp): Promise<void> {
  await assert.rejects(hook.tell(DOCUMENT, never), (error) => {
    assert.ok(error instanceof NotTold, String(error));
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /geheim|token|\/hook/);
    return true;
  });
}

describe('the signature', () => {
  it('is the HMAC of the time and the document, as the docs say', async () => {
    // By `printf '1700000000.{}' | openssl dgst -sha256 -hmac secret`.
    assert.equal(
      signature('secret', '{}', new Date(1_700_000_000_999)),
      't=1700000000,v1=b8569b78799ff9e3cbff0fc2d63a33a2b57f3282abd07c37ae5e8e7d79a5f163',
    );
    const now = signature(SECRET, DOCUMENT);
    assert.equal(await isSigned(SECRET, DOCUMENT, now), true);
    assert.equal(await isSigned('another', DOCUMENT, now), false);
    assert.equal(await isSigned(SECRET, `${DOCUMENT} `, now), false);
  });
});

describe('a hook that is a URL', () => {
  let receiver: Receiver;
  before(async () => {
    receiver = await startReceiver();
  });
  after(() => receiver.close());

  const hook = (withinMs = 150_000): Hook => urlHook(new URL(`${receiver.url}/hook?token=1`), SECRET, { withinMs });

  const last = (): Delivery => {
    const delivery = receiver.deliveries.at(-1);
    assert.ok(delivery);
    return delivery;
  };

  it('gets the document as it is signed, and nothing else', async () => {
    await hook().tell(DOCUMENT, never);
    const { method, path, headers, body } = last();
    assert.deepEqual(
      [method, path, headers['content-type'], body],
      ['POST', '/hook?token=1', 'application/json', DOCUMENT],
    );
    assert.equal(await isSigned(SECRET, body, headers['repave-signature']), true);
    assert.equal(headers.authorization, undefined);
  });

  it('is unsigned without a secret, and gets a URL’s user and password as such', async () => {
    const url = new URL(receiver.url);
    url.username = 'ana';
    url.password = 'p@ss:wörd';
    await urlHook(url, undefined).tell(DOCUMENT, never);
    const { headers } = last();
    assert.equal(headers['repave-signature'], undefined);
    assert.equal(Buffer.from(headers.authorization?.split(' ')[1] ?? '', 'base64').toString(), 'ana:p@ss:wörd');
  });

  for (const status of [301, 307, 400, 401, 404, 410, 429, 500, 503]) {
    it(`has not taken it where it answers ${status}, and is asked nowhere else`, async () => {
      receiver.answers(() => status);
      const before = receiver.deliveries.length;
      await refuses(hook(), new RegExp(`^The notify hook at 127\\.0\\.0\\.1:\\d+ answered ${status}[.,]`));
      assert.equal(receiver.deliveries.length, before + 1);
    });
  }

  it('has not taken it where it hangs, hangs up or is not there', async () => {
    receiver.answers(() => 'hangs');
    await refuses(hook(50), /did not answer within 0\.05 s/);
    receiver.answers(() => 'hangs up');
    await refuses(hook(), /could not be reached \((UND_ERR_SOCKET|ECONNRESET)\)/);
    const gone = await startReceiver();
    await gone.close();
    await refuses(urlHook(new URL(`${gone.url}/hook?token=1`), SECRET), /could not be reached \(ECONNREFUSED\)/);
  });

  it('ends with the signal’s own reason', async () => {
    receiver.answers(() => 'hangs');
    const stop = new AbortController();
    const telling = hook().tell(DOCUMENT, stop.signal);
    stop.abort(new Error('stopped'));
    await assert.rejects(telling, /^Error: stopped$/);
  });
});

describe('a hook that is a command', () => {
  const dir = mkdtempSync(join(tmpdir(), 'repave-command-hook-'));
  const hook = (command: string, withinMs = 150_000): Hook =>
    commandHook(command, SECRET, { PATH: process.env.PATH, DIR: dir }, { withinMs });
  const file = (name: string): string => readFileSync(join(dir, name), 'utf8');

  /** Runs a command that is to be ended for its time once it has begun: a slow machine may need more of that. */
  async function tooLong(command: string, writes: string): Promise<void> {
    for (let seconds = 1; !existsSync(join(dir, writes)) || file(writes) === ''; seconds *= 3) {
      assert.ok(seconds < 100, 'it never begins, or is never asked to end');
      await refuses(hook(command, seconds * 1_000), new RegExp(`had not ended after ${seconds} s`));
    }
  }

  it('gets the document on its standard input, and its signature in a variable', async () => {
    await hook('cat > "$DIR/body" && printf %s "$REPAVE_NOTIFY_SIGNATURE" > "$DIR/signature"').tell(DOCUMENT, never);
    assert.equal(file('body'), DOCUMENT);
    assert.equal(await isSigned(SECRET, DOCUMENT, file('signature')), true);
  });

  it('may leave it unread, however large it is, and say what it likes', async () => {
    await hook('exec 0<&-; yes | head -c 1000000; yes | head -c 1000000 >&2').tell('x'.repeat(5_000_000), never);
  });

  it('has not taken it where it ends with anything but 0', async () => {
    await refuses(hook('echo geheim >&2; exit 3'), /^The notify command ended with exit code 3\.$/);
    await refuses(hook('kill -9 $$'), /ended with SIGKILL/);
    await refuses(hook('no-such-command-anywhere'), /exit code 127/);
  });

  it('is killed with all that it has started where it takes too long, and where the signal comes', async () => {
    const lingering = 'sleep 600 & echo $! > "$DIR/pid"; wait';
    await tooLong(lingering, 'pid');
    await until('its child to end', async () => !isAlive(Number(file('pid'))));
    const stop = new AbortController();
    rmSync(join(dir, 'pid'));
    const telling = hook(lingering).tell(DOCUMENT, stop.signal);
    await until('its child to be there', async () => existsSync(join(dir, 'pid')) && Number(file('pid')) > 0);
    stop.abort(new Error('stopped'));
    await assert.rejects(telling, /^Error: stopped$/);
    await until('its child to end', async () => !isAlive(Number(file('pid'))));
  });

  it('leaves nothing of what it has started, however it ends, and though that heeds no SIGTERM', async () => {
    const leaving = (then: string): string => `(trap '' TERM; sleep 600) & echo $! > "$DIR/pid"; ${then}`;
    await hook(leaving('exit 0')).tell(DOCUMENT, never);
    await until('its child to end', async () => !isAlive(Number(file('pid'))));
    await refuses(hook(leaving('exit 3')), /exit code 3/);
    await until('its child to end', async () => !isAlive(Number(file('pid'))));
  });

  it('is asked to end before it is killed', async () => {
    await tooLong('trap "echo tidied > \\"$DIR/tidied\\"; exit 0" TERM; sleep 600 & wait', 'tidied');
    assert.equal(file('tidied'), 'tidied\n');
  });

  it('has not taken it where it cannot be started, for whatever reason', async () => {
    const tooMuch = { PATH: process.env.PATH, MUCH: 'x'.repeat(5_000_000) };
    await refuses(commandHook('exit 0', SECRET, tooMuch), /^The notify command could not be started \(E2BIG\)\.$/);
  });
});

describe('the settings of notify hooks', () => {
  const hooks = (env: Record<string, string>): readonly Hook[] => notifyHooks(loadSettings(env, '/nowhere'));

  it('are none, one or two', () => {
    assert.deepEqual(hooks({}), []);
    const url = { REPAVE_NOTIFY_URL: 'https://ana:geheim@hooks.example/token' };
    const command = { REPAVE_NOTIFY_COMMAND: 'cat' };
    assert.deepEqual(
      hooks(url).map(({ kind }) => kind),
      ['url'],
    );
    assert.deepEqual(
      hooks({ ...url, ...command, REPAVE_NOTIFY_SECRET: SECRET }).map(({ kind }) => kind),
      ['url', 'command'],
    );
  });

  for (const [name, env, message] of [
    ['no URL', { REPAVE_NOTIFY_URL: 'hooks/geheim' }, /REPAVE_NOTIFY_URL is not a URL of https or http/],
    ['another protocol', { REPAVE_NOTIFY_URL: 'ftp://geheim@x/y' }, /REPAVE_NOTIFY_URL is not a URL of https or http/],
    ['a password that is none', { REPAVE_NOTIFY_URL: 'http://a:%zz@x' }, /REPAVE_NOTIFY_URL/],
    ['a secret alone', { REPAVE_NOTIFY_SECRET: 'geheim' }, /neither REPAVE_NOTIFY_URL nor REPAVE_NOTIFY_COMMAND/],
  ] as const) {
    it(`refuse ${name}, and tell nothing of it`, () => {
      assert.throws(
        () => hooks(env),
        (error) => {
          assert.ok(error instanceof Failure && error.type === 'InvalidInput');
          assert.match(error.message, message);
          assert.doesNotMatch(error.message, /geheim/);
          return true;
        },
      );
    });
  }
});

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
