import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { Failure } from '../failure.js';

/** Bytes read at a time. */
const CHUNK = 1 << 18;

/**
 * A fill's rows on the worker, in COPY's text form, until its transaction begins: while a slow source stalls, no session,
 * lock or snapshot is held.
 *
 * The file has no name: it is opened with mode 0600 and unlinked at once, so that the system removes it however the fill
 * or the process ends, SIGKILL included.
 */
export class Spool {
  readonly #handle: FileHandle;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /**
   * Opens an empty spool in `folder`, by default the system's temporary one. Throws `Unexpected`, as `write` and reading do,
   * where the worker's disk says no.
   */
  static async create(folder: string = tmpdir()): Promise<Spool> {
    const path = join(folder, `repave-${randomUUID()}.spool`);
    const handle = await onDisk(open(path, 'wx+', 0o600));
    try {
      await unlink(path);
    } catch (error) {
      await handle.close();
      throw diskFailure(error);
    }
    return new Spool(handle);
  }

  /** Appends text and returns once the system has it. */
  async write(text: Buffer): Promise<void> {
    await onDisk(this.#handle.appendFile(text));
  }

  /** Reads all that was written. */
  read(): Readable {
    return Readable.from(this.#chunks(), { objectMode: false, highWaterMark: CHUNK });
  }

  async *#chunks(): AsyncGenerator<Buffer> {
    for (let position = 0; ;) {
      const { bytesRead, buffer } = await onDisk(this.#handle.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, position));
      if (bytesRead === 0) return;
      position += bytesRead;
      yield buffer.subarray(0, bytesRead);
    }
  }

  /** Gives the disk's space back. */
  async close(): Promise<void> {
    await this.#handle.close();
  }
}

async function onDisk<T>(work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    throw diskFailure(error);
  }
}

function diskFailure(error: unknown): Failure {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'no code';
  return new Failure(
    'Unexpected',
    `The worker could not spool the rows on its disk (${code}). Point REPAVE_SPOOL_DIR to a folder that it may write, with room for the largest partition.`,
  );
}
