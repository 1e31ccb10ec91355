import { randomUUID } from 'node:crypto';
import { type FileHandle, open, unlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';

/** Bytes written and read at a time. */
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
  #pending: string[] = [];
  #pendingLength = 0;
  rows = 0;

  private constructor(handle: FileHandle) {
    this.#handle = handle;
  }

  /** Opens an empty spool in `folder`, by default the system's temporary one. Throws the file system's error. */
  static async create(folder: string = tmpdir()): Promise<Spool> {
    const path = join(folder, `repave-${randomUUID()}.spool`);
    const handle = await open(path, 'wx+', 0o600);
    try {
      await unlink(path);
    } catch (error) {
      await handle.close();
      throw error;
    }
    return new Spool(handle);
  }

  /** Adds one row's line, newline included; now and then waits for the disk. */
  async add(line: string): Promise<void> {
    this.rows += 1;
    this.#pending.push(line);
    this.#pendingLength += line.length;
    if (this.#pendingLength >= CHUNK) await this.#write();
  }

  async #write(): Promise<void> {
    const text = this.#pending.join('');
    this.#pending = [];
    this.#pendingLength = 0;
    await this.#handle.appendFile(text);
  }

  /** Ends writing and reads what was written. */
  async read(): Promise<Readable> {
    await this.#write();
    return Readable.from(this.#chunks(), { objectMode: false, highWaterMark: CHUNK });
  }

  async *#chunks(): AsyncGenerator<Buffer> {
    for (let position = 0; ;) {
      const { bytesRead, buffer } = await this.#handle.read(Buffer.allocUnsafe(CHUNK), 0, CHUNK, position);
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
