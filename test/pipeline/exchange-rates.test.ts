import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { windowOf } from '../../src/calendar/window.js';
import { loadPipeline } from '../../src/pipeline/load.js';
import type { Row, TypeScriptPipeline } from '../../src/pipeline/pipeline.js';

const folder = fileURLToPath(new URL('../../pipelines', import.meta.url));

describe('pipelines/exchange_rates.ts', () => {
  let pipeline: TypeScriptPipeline;
  let server: Server | undefined;
  const variable = process.env.EXCHANGE_RATES_URL;

  before(async () => {
    const loaded = await loadPipeline(folder, 'exchange_rates');
    assert.ok(loaded.kind === 'typescript');
    pipeline = loaded;
  });

  afterEach(() => {
    server?.closeAllConnections();
    server?.close();
    server = undefined;
    if (variable === undefined) delete process.env.EXCHANGE_RATES_URL;
    else process.env.EXCHANGE_RATES_URL = variable;
  });

  async function serve(listener: RequestListener): Promise<void> {
    const started = createServer(listener);
    server = started;
    await new Promise<void>((resolve) => started.listen(0, '127.0.0.1', resolve));
    process.env.EXCHANGE_RATES_URL = `http://127.0.0.1:${(started.address() as AddressInfo).port}/rates/`;
  }

  async function rowsOf(key: string, signal = new AbortController().signal): Promise<Row[]> {
    const rows: Row[] = [];
    for await (const row of pipeline.rows({ key, window: windowOf(pipeline.partition, key), signal }))
      rows.push(row as Row);
    return rows;
  }

  it('says what it fills', () => {
    assert.deepEqual(pipeline.target, { table: 'exchange_rates' });
    assert.deepEqual(pipeline.partition, { column: 'day', by: 'day', zone: 'UTC' });
    assert.equal(pipeline.start, '1999-01-04');
    assert.deepEqual(pipeline.columns, ['day', 'currency', 'rate']);
  });

  it('asks for the date and gives a row a currency, each rate as the text it was sent in', async () => {
    const asked: (string | undefined)[] = [];
    await serve((request, response) => {
      asked.push(request.url);
      response.end(
        '{"date":"2024-02-29","base":"EUR","note":"1.5 \\"2.50\\"","rates":{"USD":1.0830,"IDR":17012.123456789012345678,"JPY":1.6e+2,"XXX":-0.10}}',
      );
    });
    assert.deepEqual(await rowsOf('2024-02-29'), [
      { day: '2024-02-29', currency: 'USD', rate: '1.0830' },
      { day: '2024-02-29', currency: 'IDR', rate: '17012.123456789012345678' },
      { day: '2024-02-29', currency: 'JPY', rate: '1.6e+2' },
      { day: '2024-02-29', currency: 'XXX', rate: '-0.10' },
    ]);
    assert.deepEqual(asked, ['/rates/2024-02-29']);
  });

  it('fails on another status, another date and no URL', async () => {
    await serve((request, response) => {
      response.statusCode = request.url?.endsWith('2024-02-28') ? 503 : 200;
      response.end('{"date":"2024-02-27","base":"EUR","rates":{}}');
    });
    await assert.rejects(rowsOf('2024-02-28'), /answered 503 for 2024-02-28/);
    await assert.rejects(rowsOf('2024-02-29'), /another date or base than EUR on 2024-02-29/);
    assert.deepEqual(await rowsOf('2024-02-27'), []);
    delete process.env.EXCHANGE_RATES_URL;
    await assert.rejects(rowsOf('2024-02-27'), /EXCHANGE_RATES_URL is not set/);
  });

  it('stops when the fill is cancelled', async () => {
    const cancelled = new AbortController();
    let closed: Promise<void> | undefined;
    await serve((request) => {
      closed = new Promise((resolve) => request.on('close', resolve));
      cancelled.abort(new Error('cancelled by the test'));
    });
    await assert.rejects(rowsOf('2024-02-29', cancelled.signal), /cancelled by the test/);
    await closed;
  });
});
