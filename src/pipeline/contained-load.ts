/** Milliseconds that the code of a pipeline's file, with all that it imports, may take to load. */
export const LOAD_LIMIT_MS = 30_000;

/** What code did while it loaded that would take the process down with it; the message is a sentence about its file. */
export class Uncontained extends Error {}

let loading = 0;
let realExit: PropertyDescriptor = {};

/**
 * Loads code so that it takes nothing else down: a load that never ends is given up, and a call of `process.exit` ends the
 * load alone. Throws {@link Uncontained} then, and else what the load throws. A loop that never yields cannot be given up.
 */
export async function containedLoad<Loaded>(load: () => Promise<Loaded>, limitMs: number): Promise<Loaded> {
  // Without a timer that holds the process, an await of nothing would end it in silence.
  let timer: NodeJS.Timeout | undefined;
  const limit = new Promise<never>((_, reject) => {
    const message = `it does not finish loading within ${limitMs / 1000} s: expected top-level code that ends. Work belongs in \`rows\`.`;
    timer = setTimeout(() => reject(new Uncontained(message)), limitMs);
  });
  holdExit();
  try {
    return await Promise.race([load(), limit]);
  } finally {
    clearTimeout(timer);
    releaseExit();
  }
}

/** Loads may overlap: the last that ends gives the function back. */
function holdExit(): void {
  if (loading++ > 0) return;
  realExit = Object.getOwnPropertyDescriptor(process, 'exit') ?? {};
  process.exit = () => {
    throw new Uncontained('it calls process.exit while it loads: expected code that throws an error instead.');
  };
}

function releaseExit(): void {
  if (--loading === 0) Object.defineProperty(process, 'exit', realExit);
}
