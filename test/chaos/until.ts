/** Milliseconds after which a wait says what it has waited for. Never a measure of speed. */
const HANG_LIMIT_MS = 240_000;

/** Asks until the answer is neither undefined nor false, and returns it. */
export async function until<T>(what: string, ask: () => Promise<T | undefined | false>): Promise<T> {
  const limit = Date.now() + HANG_LIMIT_MS;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (Date.now() > limit) throw new Error(`Waited ${HANG_LIMIT_MS / 1000} s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
