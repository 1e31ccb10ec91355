import assert from 'node:assert/strict';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';

const KEY = '2024-03-01';
const NAME = 'deaf_source';

/** On the first worker it never ends, and does not hear that nobody waits for it. */
const PIPELINE = `
import { definePipeline } from 'repave';
export default definePipeline({
  target: 'target',
  partition: { column: 'day', by: 'day' },
  async *rows({ key }) {
    if (process.env.DEAF) {
      process.stderr.write('the source waits\\n');
      for (;;) await new Promise((go) => setTimeout(go, 100));
    }
    for (let i = 0; i < 10; i++) yield { day: key };
  },
});
`;

describe('a source that does not heed its signal', function () {
  this.timeout(300_000);
  let installation: Installation;

  before(async () => {
    installation = await Installation.open({
      pipelines: { [`${NAME}.ts`]: PIPELINE },
      tables: 'CREATE TABLE target (day date NOT NULL);',
    });
  });
  after(() => installation.close());

  it('keeps no worker from stopping, and another does its fill', async () => {
    const worker = await installation.startWorker({ env: { REPAVE_SHUTDOWN_GRACE: '0', DEAF: 'yes' } });
    const handle = await installation.client.partition({ pipeline: NAME, key: KEY });
    await until('the source to be read', async () => worker.log().includes('the source waits'));
    let exit: number | NodeJS.Signals | undefined;
    void worker.stop().then((how) => (exit = how));
    await until('the worker to end', async () => exit !== undefined);
    assert.equal(exit, 0);
    await installation.startWorker();
    assert.equal((await handle.result()).rows, 10);
    assert.deepEqual(await installation.database.sql('SELECT count(*)::int AS rows FROM target'), [{ rows: 10 }]);
  });
});
