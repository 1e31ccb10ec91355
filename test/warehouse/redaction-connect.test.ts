import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { inspect } from 'node:util';
import type { FailureType } from '../../src/contract.js';
import { openDatabase } from '../../src/warehouse/database.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, within } from '../support/fill.js';

const SECRET = 'hunter2-7f3a';
const USER = 'analyst-9b1c';

describe('what a database URL holds is in no failure:', () => {
  let test: TestDatabase;
  let place: string;

  before(async () => {
    test = await createTestDatabase();
    place = new URL(test.url).host;
  });
  after(async () => {
    await test.drop();
  });

  const fails = async (url: string, type: FailureType, message: RegExp): Promise<void> => {
    const failure = await failsAs(within('opening the database', openDatabase(url, { fills: 1 })), type);
    const shown = [
      failure.stack,
      String(failure),
      JSON.stringify(failure),
      inspect(failure, { depth: 10, showHidden: true }),
    ];
    for (const secret of [SECRET, encodeURIComponent(SECRET), USER, url]) {
      assert.ok(!shown.join('\n').includes(secret), `says ${secret}`);
    }
    assert.match(failure.message, message);
    assert.equal(failure.cause, undefined);
  };

  it('a wrong password', async () => {
    await fails(
      `postgres://${test.workerRole}:${SECRET}@${place}/${test.name}`,
      'DatabaseUnavailable',
      new RegExp(`${test.name} at ${place}.*28P01`),
    );
  });

  it('an unknown user', async () => {
    await fails(
      `postgres://${USER}:${SECRET}@${place}/${test.name}`,
      'DatabaseUnavailable',
      new RegExp(`${test.name} at ${place}.*28P01`),
    );
  });

  it('a database that is not there', async () => {
    const url = new URL(test.url);
    url.pathname = '/nowhere';
    await fails(url.href, 'DatabaseUnavailable', new RegExp(`nowhere at ${place}.*3D000`));
  });

  it('a host that is not there', async () => {
    await fails(
      `postgres://${USER}:${SECRET}@nowhere.invalid:6432/sales`,
      'DatabaseUnavailable',
      // Without a code where the name server itself does not answer in time.
      /sales at nowhere\.invalid:6432.*could not be made( \((ENOTFOUND|EAI_AGAIN)\))?\.$/,
    );
  });

  it('a port where nobody listens', async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    assert.ok(typeof address === 'object' && address);
    await new Promise((resolve) => server.close(resolve));
    await fails(
      `postgres://${USER}:${SECRET}@127.0.0.1:${address.port}/sales`,
      'DatabaseUnavailable',
      /sales at 127\.0\.0\.1:\d+.*ECONNREFUSED/,
    );
  });

  it('a server that is no PostgreSQL', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined).resume();
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    assert.ok(typeof address === 'object' && address);
    try {
      await fails(
        `postgres://${USER}:${SECRET}@127.0.0.1:${address.port}/sales`,
        'DatabaseUnavailable',
        /sales at 127\.0\.0\.1/,
      );
    } finally {
      await new Promise((resolve) => server.close(resolve));
    }
  });

  it('TLS asked of a server without it', async () => {
    await fails(
      `${test.url.replace(/:[^:@]*@/, `:${SECRET}@`)}?sslmode=verify-full`,
      'DatabaseUnavailable',
      new RegExp(`${test.name} at ${place}`),
    );
  });

  it('a certificate that cannot be read', async () => {
    await fails(
      `postgres://${USER}:${SECRET}@${place}/sales?sslrootcert=/nowhere/${SECRET}`,
      'DatabaseUnavailable',
      /could not be made \(ENOENT\)/,
    );
  });

  const UNREADABLE: Readonly<Record<string, string>> = {
    'no URL at all': `host=x password=${SECRET}`,
    'another scheme': `mysql://${USER}:${SECRET}@host/sales`,
    'a bad port': `postgres://${USER}:${SECRET}@host:port/sales`,
    'a percent sign in the name': `postgres://${USER}:${SECRET}@host/%E0%A4%A`,
    nothing: '',
  };
  for (const [what, url] of Object.entries(UNREADABLE)) {
    it(`a URL that cannot be read: ${what}`, async () => {
      if (url !== '') await fails(url, 'InvalidInput', /database URL.*postgres:\/\//);
      else await failsAs(openDatabase(url, { fills: 1 }), 'InvalidInput');
    });
  }
});
