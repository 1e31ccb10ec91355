/**
 * Makes a test of each case and runs all of them at the same time: each spends most of its time waiting until Temporal
 * misses a worker's heartbeat.
 */
export function atOnce(cases: Readonly<Record<string, () => Promise<void>>>): void {
  const running = new Map<string, Promise<void>>();
  before(() => {
    for (const [name, run] of Object.entries(cases)) {
      const ended = run();
      // Awaited by its own test, which may come long after it has failed.
      ended.catch(() => undefined);
      running.set(name, ended);
    }
  });
  for (const name of Object.keys(cases)) it(name, () => running.get(name));
  after(() => Promise.allSettled(running.values()));
}
