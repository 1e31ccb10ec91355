/** Milliseconds after which a no, or no answer, is asked about again: somebody may have added them. */
const ASK_AGAIN_MS = 3 * 60_000;

/**
 * Makes a question of one that costs a call: asked once at a time, a yes is kept for good, a no for `againMs`. What throws
 * counts as a no. `now` in milliseconds, of a clock that only goes on.
 */
export function rememberedYes(
  ask: () => Promise<boolean>,
  { againMs = ASK_AGAIN_MS, now = () => performance.now() } = {},
): () => Promise<boolean> {
  let answer: Promise<boolean> | undefined;
  let keepUntil = Infinity;
  return () => {
    if (answer === undefined || now() >= keepUntil) {
      keepUntil = Infinity;
      answer = ask()
        .catch(() => false)
        .then((yes) => {
          if (!yes) keepUntil = now() + againMs;
          return yes;
        });
    }
    return answer;
  };
}
