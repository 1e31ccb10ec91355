import assert from 'node:assert/strict';
import { cronFault } from '../../src/pipeline/cron.js';
import { CRONS } from './crons.js';

describe('a cron expression', () => {
  for (const cron of CRONS.taken) {
    it(`may be ${cron}`, () => assert.equal(cronFault(cron), undefined));
  }
  for (const [cron, fault] of CRONS.refused) {
    it(`may not be ${cron}, and why`, () => assert.match(cronFault(cron) ?? '', fault));
  }
  for (const [cron, fault] of CRONS.takenByTemporalAlone) {
    it(`may not be ${cron} though Temporal takes it, and why`, () => assert.match(cronFault(cron) ?? '', fault));
  }
});
