import { Readable } from 'node:stream';
import type { TypeScriptPipeline } from '../pipeline/pipeline.js';
import type { FillRequest } from './fill-request.js';
import { quotedList } from './identifier.js';
import { droppedRows } from './row-accounts.js';
import type { RowSupply } from './row-supply.js';
import type { Session } from './session.js';
import { SourceText } from './source-text.js';
import type { Target } from './target.js';
import { IDLE_TIMEOUT_MS } from './transaction.js';

/** Bytes that go to the server at a time. */
const CHUNK = 1 << 16;

/**
 * The rows of a TypeScript pipeline with `stage: false`, straight into the transaction's COPY: the pipeline's code is asked
 * for more only as the server takes what was sent. Its first row is read here, before anything is deleted, so that a source
 * that has failed costs nothing; but under the locks, as all the others are: a source that stalls holds them, until the
 * attempt's deadline or a cancel ends the session.
 */
export async function streamedSupply(
  session: Session,
  request: FillRequest,
  pipeline: TypeScriptPipeline,
  target: Target,
): Promise<RowSupply> {
  const source = new SourceText(pipeline, request, target, { step: 'insert', chunk: CHUNK });
  try {
    // The server must not take the wait for the source for a dead worker's.
    await setIdleTimeout(session, request.timeLeftMs);
    const some = await source.first();
    await setIdleTimeout(session, IDLE_TIMEOUT_MS);
    const { columns } = source;
    const { sourceVersion } = request.origin ?? {};
    return {
      columns,
      async write(into, { table }) {
        if (!some) return { sent: 0, sums: new Map(), sourceVersion };
        const copied = await copy(into, `COPY ${table} (${quotedList(columns)}) FROM STDIN`, source);
        if (copied !== source.rows) throw droppedRows(target, source.rows, source.rows - copied);
        return { sent: copied, sums: new Map(), sourceVersion };
      },
      close: async () => source.end(),
    };
  } catch (error) {
    source.end();
    throw error;
  }
}

/** Throws what the source threw where that came first: the server is told of it, and writes none of the rows. */
async function copy(session: Session, statement: string, source: SourceText): Promise<number> {
  let fault: { readonly error: unknown } | undefined;
  const text = new Readable({
    highWaterMark: CHUNK,
    read() {
      source.next().then(
        (lines) => this.push(lines ?? null),
        (error: unknown) => {
          fault ??= { error };
          // Sent to the server, which logs it: the source's own words may hold values of rows.
          this.destroy(new Error('The source of the rows failed'));
        },
      );
    },
  });
  try {
    return await session.copy(statement, text, { mayStall: true });
  } catch (error) {
    throw fault ? fault.error : error;
  }
}

async function setIdleTimeout(session: Session, milliseconds: number): Promise<void> {
  await session.query(`SELECT pg_catalog.set_config('idle_in_transaction_session_timeout', $1, true)`, [
    String(Math.max(1, Math.ceil(milliseconds))),
  ]);
}
