/** The run's seed: `SEED` of the environment, else one of its own. Printed, so that a failure can be had again. */
export function seed(): number {
  const given = process.env.SEED;
  const number = given === undefined ? Date.now() % 2 ** 31 : Number(given);
  console.log(`      SEED=${number}`);
  return number;
}

/** Numbers in [0, 1), the same for the same seed (mulberry32). */
export function randomFrom(start: number): () => number {
  let state = start | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
