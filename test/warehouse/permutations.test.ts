import assert from 'node:assert/strict';
import { rewriteFor } from './broken-variants.js';
import { type Broken, InterleavingBench, orders, type Trial } from './interleaving.js';
import type { Point } from './steered-fill.js';

/** Lock and look; delete; insert and count; guard and commit. */
const FOUR_STEPS: readonly Point[] = ['before begin', 'before delete', 'before insert', 'before guard'];
/** The source, into the spool; lock, look and delete; copy and count; guard and commit. */
const FOUR_STEPS_OF_COPY: readonly Point[] = ['before claim', 'before lock', 'in copy', 'before guard'];
/** Lock and look; delete, insert and count; guard and commit. */
const THREE_STEPS: readonly Point[] = ['before begin', 'before delete', 'before guard'];
/** Claim; everything up to the guard; guard and commit. */
const CLAIM_STEPS: readonly Point[] = ['before claim', 'before begin', 'before guard'];

describe('two runs fill one window, in every order of their steps', function () {
  // Seventy fills of two runs at a time, which take long on a slow machine.
  this.timeout(600_000);
  let bench: InterleavingBench;
  before(async () => {
    bench = await InterleavingBench.open();
  });
  after(async () => bench.close());

  it('tries each order once', () => {
    assert.deepEqual(orders(2), ['aabb', 'abab', 'abba', 'baab', 'baba', 'bbaa']);
    assert.equal(new Set(orders(4)).size, 70);
  });

  const whole: readonly (readonly [string, Trial])[] = [
    ['SQL, an empty window', { kind: 'sql', full: false, steps: FOUR_STEPS }],
    ['SQL, a full window', { kind: 'sql', full: true, steps: FOUR_STEPS }],
    ['SQL, claims between', { kind: 'sql', full: true, steps: CLAIM_STEPS }],
    ['TypeScript, an empty window', { kind: 'typescript', full: false, steps: FOUR_STEPS_OF_COPY }],
    ['TypeScript, a full window', { kind: 'typescript', full: true, steps: CLAIM_STEPS }],
  ];
  for (const [name, trial] of whole) {
    it(`${name}: both end well, one copy, and the ledger says whose`, async () => {
      assert.deepEqual(await bench.broken(trial), []);
    });
  }

  describe('a broken protocol is caught', () => {
    const sql: Trial = { kind: 'sql', full: false, steps: THREE_STEPS };

    it('no window lock: rows are doubled', async () => {
      const broken = await bench.broken({ ...sql, rewrite: () => rewriteFor('no window lock') });
      assert.ok(
        broken.some(({ duplicated }) => duplicated),
        summary(broken),
      );
    });

    it('lock inside the DELETE’s statement: a fill finds rows that its DELETE did not see', async () => {
      const broken = await bench.broken({ ...sql, rewrite: () => rewriteFor('lock inside the DELETE’s statement') });
      assert.ok(saysSomewhere(broken, 'Conflict'), summary(broken));
    });

    for (const variant of ['no window lock', 'lock inside the DELETE’s statement'] as const) {
      it(`${variant}, and no look behind DELETE and INSERT: rows are doubled`, async () => {
        const broken = await bench.broken({ ...sql, rewrite: () => rewriteFor(variant, { blind: true }) });
        assert.ok(
          broken.some(({ duplicated }) => duplicated),
          summary(broken),
        );
      });
    }

    it('one fence for all runs: a healthy run fails', async () => {
      const broken = await bench.broken({
        ...sql,
        steps: CLAIM_STEPS,
        rewrite: () => rewriteFor('one fence for all runs'),
      });
      assert.ok(saysSomewhere(broken, 'StaleAttempt'), summary(broken));
    });
  });
});

function saysSomewhere(broken: readonly Broken[], type: string): boolean {
  return broken.some(({ violations }) => violations.some((text) => text.includes(type)));
}

function summary(broken: readonly Broken[]): string {
  return `${broken.length} orders broke something: ${broken
    .slice(0, 3)
    .map(({ order, violations }) => `${order}: ${violations.join('; ')}`)
    .join('\n')}`;
}
