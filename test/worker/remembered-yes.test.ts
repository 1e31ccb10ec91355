import assert from 'node:assert/strict';
import { rememberedYes } from '../../src/worker/remembered-yes.js';

describe('a question whose yes is remembered', () => {
  it('is asked once at a time, and never again after a yes', async () => {
    let asked = 0;
    let say: (yes: boolean) => void = () => undefined;
    const has = rememberedYes(() => {
      asked++;
      return new Promise<boolean>((resolve) => (say = resolve));
    });
    const both = [has(), has()];
    say(true);
    assert.deepEqual([await Promise.all(both), await has(), asked], [[true, true], true, 1]);
  });

  it('is asked again after a while where the answer was no, or none', async () => {
    let time = 0;
    const answers: (() => Promise<boolean>)[] = [
      () => Promise.resolve(false),
      () => Promise.reject(new Error('unreachable')),
      () => Promise.resolve(true),
    ];
    let asked = 0;
    const has = rememberedYes(() => answers[asked++]!(), { againMs: 10, now: () => time });
    for (const [at, yes, times] of [
      [0, false, 1],
      [9, false, 1],
      [10, false, 2],
      [19, false, 2],
      [20, true, 3],
      [1_000, true, 3],
    ] as const) {
      time = at;
      assert.deepEqual([await has(), asked], [yes, times], `at ${at}`);
    }
  });
});
