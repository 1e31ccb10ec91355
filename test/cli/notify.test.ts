import assert from 'node:assert/strict';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isSigned, type Receiver, startReceiver } from '../support/receiver.js';
import { schema } from '../support/schemas.js';
import { startRepave } from './repave.js';

describe('repave notify', () => {
  const project = mkdtempSync(join(tmpdir(), 'repave-notify-'));
  let receiver: Receiver;
  before(async () => {
    receiver = await startReceiver();
  });
  after(() => receiver.close());

  const notify = (env: Record<string, string>, ...words: string[]) =>
    startRepave(project, ['notify', ...words], env).ended;

  it('tells each hook of a test, and says which have taken it', async () => {
    const isNotice = schema('notice');
    const env = {
      REPAVE_NOTIFY_URL: `${receiver.url}/token`,
      REPAVE_NOTIFY_COMMAND: 'exit 3',
      REPAVE_NOTIFY_SECRET: 'geheim',
    };
    const { code, stdout, stderr } = await notify(env, '--json');
    assert.equal(code, 1, stderr);
    const [{ body, headers } = { body: '', headers: {} as Record<string, string> }] = receiver.deliveries;
    const notice = JSON.parse(body) as { id: string; event: string };
    assert.ok(isNotice(notice), JSON.stringify(isNotice.errors));
    assert.equal(notice.event, 'test');
    assert.ok(await isSigned('geheim', body, headers['repave-signature']));
    assert.deepEqual(JSON.parse(stdout), {
      version: 1,
      id: notice.id,
      hooks: [
        { hook: 'url', taken: true },
        { hook: 'command', taken: false, message: 'The notify command ended with exit code 3.' },
      ],
    });
  });

  it('is refused where there is none', async () => {
    const { code, stderr } = await notify({});
    assert.equal(code, 2);
    assert.match(stderr, /set REPAVE_NOTIFY_URL or REPAVE_NOTIFY_COMMAND/);
  });
});
