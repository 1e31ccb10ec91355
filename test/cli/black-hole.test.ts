import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { makeProject, repave, SALES, SALES_SUMMARY } from './repave.js';

/** A server that takes whatever it is sent and never answers, as one behind a firewall that drops packets. */
class BlackHole {
  readonly #sockets = new Set<Socket>();
  readonly #server: Server = createServer((socket) => this.#sockets.add(socket.on('error', () => undefined)));

  async open(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Whether anybody has come. */
  get met(): boolean {
    return this.#sockets.size > 0;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

describe('a Temporal server that never answers', function () {
  this.timeout(600_000);
  let database: TestDatabase;
  let project: string;
  let hole: BlackHole;
  let env: Record<string, string>;
  before(async () => {
    database = await createTestDatabase();
    await database.sql(SALES);
    project = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY });
  });
  beforeEach(async () => {
    hole = new BlackHole();
    env = { DATABASE_URL: database.url, TEMPORAL_ADDRESS: await hole.open() };
  });
  afterEach(() => hole.close());
  after(async () => {
    await database.drop();
    rmSync(project, { recursive: true, force: true });
  });

  it('is not waited for by `status`, which says what the ledger knows, and that', async () => {
    const { code, stdout, stderr } = await repave(project, ['status'], env);
    assert.deepEqual([code, stdout], [0, 'Nothing yet.\n'], stderr);
    assert.match(
      stderr,
      new RegExp(`^Temporal at ${env.TEMPORAL_ADDRESS} did not answer within 2 s\\. Backfills that no`),
    );
    assert.ok(hole.met);
  });

  it('is told of a backfill that the ledger has open', async () => {
    await database.sql(
      `INSERT INTO repave.backfill (run, id, pipeline, input, total) VALUES ('r', 'backfill/x/all', 'x', '{"pipeline":"x","only":["missing"]}', 3)`,
    );
    try {
      const { code, stdout, stderr } = await repave(project, ['status'], env);
      assert.equal(code, 0, stderr);
      assert.match(stdout, /backfill\/x\/all.*unknown/);
      assert.match(stderr, /did not answer within 2 s\. Whether open backfills still run is not known\./);
    } finally {
      await database.sql(`DELETE FROM repave.backfill WHERE run = 'r'`);
    }
  });

  it('is named where it alone may know what was asked for', async () => {
    const { code, stderr } = await repave(project, ['status', 'backfill/nobody/all'], env);
    assert.equal(code, 2);
    assert.match(stderr, /The ledger knows no pipeline and no backfill .* did not answer within 2 s\. It may know one/);
  });

  for (const words of [
    ['plan', 'sales_summary', '1997-01-01..1997-01-05'],
    ['history', 'sales_summary', '1997-01-01'],
    ['check'],
    ['pipelines'],
  ]) {
    it(`is not asked by \`${words[0]}\``, async () => {
      const { code, stderr } = await repave(project, words, env);
      assert.equal(code, 0, stderr);
      assert.equal(hole.met, false);
    });
  }
});
