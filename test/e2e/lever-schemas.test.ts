import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type WorkflowHandle, WorkflowUpdateFailedError } from '@temporalio/client';
import fc from 'fast-check';
import { type Lever, LEVERS, type Progress, STEER_SIGNAL } from '../../src/contract.js';
import { schema } from '../support/schemas.js';
import { type Bed, makeBed } from '../support/bed.js';

const SCHEMAS: Record<Lever, string> = {
  pause: 'pause-input',
  resume: 'resume-input',
  setConcurrency: 'set-concurrency-input',
  stop: 'stop-input',
  retryFailed: 'retry-failed-input',
};

/** Each with whether it is right. */
const INPUTS: readonly (readonly [right: boolean, lever: Lever, input: unknown])[] = [
  [true, 'pause', {}],
  [true, 'pause', { reason: '' }],
  [true, 'pause', { reason: 'x'.repeat(200) }],
  [false, 'pause', { reason: 'x'.repeat(201) }],
  [false, 'pause', { reason: 5 }],
  [false, 'pause', { reason: null }],
  [false, 'pause', { why: 'x' }],
  [false, 'pause', 'the reason'],
  [true, 'setConcurrency', { concurrency: 1 }],
  [true, 'setConcurrency', { concurrency: 100 }],
  [false, 'setConcurrency', { concurrency: 0 }],
  [false, 'setConcurrency', { concurrency: 101 }],
  [false, 'setConcurrency', { concurrency: 1.5 }],
  [false, 'setConcurrency', { concurrency: '4' }],
  [false, 'setConcurrency', {}],
  [false, 'setConcurrency', 4],
  [true, 'resume', {}],
  [false, 'resume', { reason: 'x' }],
  [false, 'resume', []],
  [true, 'retryFailed', {}],
  [false, 'retryFailed', { only: ['failed'] }],
  [false, 'stop', { now: true }],
  [false, 'stop', true],
];

describe('the schemas of the levers, and the backfill that takes them', function () {
  this.timeout(300_000);
  let bed: Bed;
  let backfill: WorkflowHandle;

  before(async () => {
    bed = await makeBed();
    await bed.worker();
    // Held: the backfill is there to be steered for as long as the test is.
    await bed.hold('2024-01-01');
    const { id } = await bed.client.backfill({ pipeline: bed.pipeline, keys: ['2024-01-01'] });
    backfill = bed.client.temporal.workflow.getHandle(id);
  });
  after(() => bed.close());

  /** Whether the update is taken. */
  const takes = async (lever: Lever, input: unknown): Promise<boolean> => {
    try {
      const steered: unknown = await backfill.executeUpdate(lever, { args: [input] });
      assert.ok(schema('steered')(steered), JSON.stringify(steered));
      return true;
    } catch (error) {
      if (error instanceof WorkflowUpdateFailedError) return false;
      throw error;
    }
  };

  it('agree on inputs that are right or wrong', async () => {
    for (const [right, lever, input] of INPUTS) {
      const shown = `${lever} ${JSON.stringify(input)}`.slice(0, 100);
      assert.equal(schema(SCHEMAS[lever])(input), right, `the schema: ${shown}`);
      assert.equal(await takes(lever, input), right, `the backfill: ${shown}`);
    }
  });

  it('agree on objects of some fields', async () => {
    const value = fc.oneof(
      fc.integer({ min: -1, max: 102 }),
      fc.constantFrom('', 'x'.repeat(200), 'x'.repeat(201), true, null, 0.5),
    );
    const input = fc.dictionary(fc.constantFrom('reason', 'concurrency', 'id'), value, { maxKeys: 2 });
    // `stop` would end what the others are sent to.
    const lever = fc.constantFrom(...LEVERS.filter((name) => name !== 'stop'));
    await fc.assert(
      fc.asyncProperty(lever, input, async (name, fields) => {
        const given: unknown = JSON.parse(JSON.stringify(fields));
        assert.equal(await takes(name, given), schema(SCHEMAS[name])(given), `${name} ${JSON.stringify(given)}`);
      }),
      { numRuns: 60 },
    );
  });

  it('agree on the signal steer: one that is wrong is passed over', async () => {
    const validate = schema('steer');
    let concurrency = 10;
    for (const [right, steer] of [
      [true, (n: number) => ({ id: 'x'.repeat(200), lever: 'setConcurrency', input: { concurrency: n } })],
      [true, (n: number) => ({ id: randomUUID(), lever: 'setConcurrency', input: { concurrency: n } })],
      [false, (n: number) => ({ id: '', lever: 'setConcurrency', input: { concurrency: n } })],
      [false, (n: number) => ({ id: 'y'.repeat(201), lever: 'setConcurrency', input: { concurrency: n } })],
      [false, (n: number) => ({ lever: 'setConcurrency', input: { concurrency: n } })],
      [false, (n: number) => ({ id: randomUUID(), lever: 'set', input: { concurrency: n } })],
      [false, (n: number) => ({ id: randomUUID(), lever: 'setConcurrency', input: { concurrency: n }, now: true })],
      [false, (n: number) => ({ id: randomUUID(), lever: 'setConcurrency', input: { concurrency: n, more: 1 } })],
      [false, () => ({ id: randomUUID(), lever: 'setConcurrency' })],
      [false, (n: number) => ({ id: randomUUID(), lever: 'pause', input: { concurrency: n } })],
      [true, (n: number) => ({ id: randomUUID(), lever: 'setConcurrency', input: { concurrency: n } })],
    ] as const) {
      const given = steer(++concurrency);
      const before = await backfill.query<Progress>('progress');
      assert.equal(validate(given), right, `the schema: ${JSON.stringify(given)}`);
      await backfill.signal(STEER_SIGNAL, given);
      // What came before it has been judged once an update is answered.
      await backfill.executeUpdate('resume');
      const after = await backfill.query<Progress>('progress');
      const expected = right ? concurrency : before.concurrency;
      assert.equal(after.concurrency, expected, `the backfill: ${JSON.stringify(given)}`);
      assert.equal(after.paused, undefined);
    }
  });
});
