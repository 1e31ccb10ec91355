/** A key that names no partition of a grid. The message says what was given and what was expected. */
export class KeyError extends Error {
  override readonly name = 'KeyError';

  constructor(
    /** The key as it was given. */
    readonly key: string,
    /** What is wrong with it, to be read behind the key: `is an hour`, `did not exist in Pacific/Apia`. */
    readonly problem: string,
    /** What would have been right: `a day such as 2024-02-29`. */
    readonly expected: string,
  ) {
    super(`${quoted(key)} ${problem}: expected ${expected}`);
  }

  /** The key as messages show it: in quotes, and cut where it is long. */
  get given(): string {
    return quoted(this.key);
  }
}

function quoted(key: string): string {
  return JSON.stringify(key.length > 60 ? `${key.slice(0, 60)}…` : key);
}
