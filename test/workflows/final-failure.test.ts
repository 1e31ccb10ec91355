import assert from 'node:assert/strict';
import { ApplicationFailure } from '@temporalio/activity';
import { failedAs, Harness } from './harness.js';
import { scripted } from './scripted.js';

describe('a failure that Temporal does not take as it is', () => {
  const harness = new Harness();

  it('is told as the server’s refusal, and not as a cancel', async () => {
    const planBackfill = async (): Promise<never> => {
      throw ApplicationFailure.nonRetryable('x'.repeat(1_500_000), 'InvalidInput');
    };
    const handle = await harness.backfill(scripted({ control: { planBackfill } }));
    await assert.rejects(handle.result(), failedAs('Unexpected', 'Temporal'));
  });
});
