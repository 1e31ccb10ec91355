import assert from 'node:assert/strict';
import type { BrokenVariant } from './broken-variants.js';
import { FreezeBench, type FreezeCase, type FreezePoint, type PipelineKind } from './freeze-case.js';
import type { Point } from './steered-fill.js';

/** Where attempt 1 is stopped, in the order of the protocol. */
const POINTS: Readonly<Record<PipelineKind, readonly FreezePoint[]>> = {
  sql: (
    'before claim, after claim, before begin, after pins, before lock, after lock, after look, before delete, after delete, ' +
    'after kept, in insert, after insert, after constraints, before guard, after guard, before commit, in commit'
  ).split(', ') as FreezePoint[],
  typescript: (
    'before claim, after claim, in source, before lock, after lock, after look, before delete, after delete, in copy, ' +
    'before constraints, before guard, after guard, before commit, in commit'
  ).split(', ') as FreezePoint[],
  // What comes before the source is read is as with the spool.
  streamed:
    'after look, before delete, after delete, in source, in copy, before constraints, before guard, after guard, before commit, in commit'.split(
      ', ',
    ) as FreezePoint[],
};
/** How far attempt 2 comes before attempt 1 goes on. */
const MEETINGS: readonly (Point | undefined)[] = [undefined, 'after claim', 'after look', 'after guard'];

describe('the freeze matrix', () => {
  let bench: FreezeBench;
  before(async () => {
    bench = await FreezeBench.open();
  });
  after(async () => bench.close());

  for (const kind of ['sql', 'typescript', 'streamed'] as const) {
    for (const second of MEETINGS) {
      const meeting = second ? `comes to ${second}` : 'runs to its end';
      describe(`${kind}: attempt 2 ${meeting}, then attempt 1 goes on`, () => {
        for (const first of POINTS[kind]) {
          it(`attempt 1 frozen ${first}`, async () => {
            assert.deepEqual(await bench.violations({ kind, first, second }), []);
          });
        }
      });
    }
  }

  describe('a broken protocol is caught', () => {
    const caught: readonly (readonly [BrokenVariant, FreezeCase])[] = [
      ['no guard', { kind: 'sql', first: 'before guard', second: 'after claim' }],
      ['no guard', { kind: 'typescript', first: 'before guard', second: 'after claim' }],
      ['no guard', { kind: 'streamed', first: 'in source', second: 'after claim' }],
      ['no claim guard', { kind: 'sql', first: 'before claim', second: 'after claim' }],
      ['no claim guard', { kind: 'sql', first: 'before claim', second: 'after look' }],
      ['no claim guard', { kind: 'typescript', first: 'before claim', second: 'after claim' }],
    ];
    for (const [variant, freeze] of caught) {
      it(`${variant}: ${freeze.kind}, attempt 1 frozen ${freeze.first}, attempt 2 ${freeze.second}`, async () => {
        const violations = await bench.violations(freeze, variant);
        assert.ok(violations.includes('attempt 1 committed after attempt 2 had begun'), violations.join('; '));
      });
    }
  });
});
