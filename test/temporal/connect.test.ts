import assert from 'node:assert/strict';
import { connectTemporal } from '../../src/temporal/connect.js';
import { temporalServer } from '../../src/temporal/temporal-server.js';

describe('an address of Temporal at which none can be', () => {
  for (const address of ['http://localhost:7233', 'a:b:c:d']) {
    for (const patienceMs of [undefined, 60_000]) {
      it(`${address} is told as such, ${patienceMs === undefined ? 'waited for or not' : 'and not as one that is late'}`, async () => {
        const server = temporalServer({ env: { TEMPORAL_ADDRESS: address } });
        await assert.rejects(connectTemporal(server, patienceMs), (error: Error) => {
          assert.equal(error.name, 'ServerUnreachable');
          assert.match(error.message, /^No Temporal server answers at /);
          assert.ok(error.message.includes(address));
          return true;
        });
      });
    }
  }
});
