import { createHash } from 'node:crypto';
import pg from 'pg';
import { Failure } from '../failure.js';
import { attemptName } from './attempt-name.js';
import type { Database } from './database.js';
import { sqlstate } from './errors.js';
import type { FillRequest } from './fill-request.js';
import { quoted } from './identifier.js';
import { takeParts } from './lock.js';
import { type MissingPart, missingParts } from './missing-parts.js';
import type { Session } from './session.js';
import { readTarget, type Target } from './target.js';
import { begin, commit } from './transaction.js';
import { withSession } from './with-session.js';

/** Times that a lock is not got, or somebody else's part found in the way, before the fill comes again later. */
const TRIES = 5;
/** Milliseconds that ATTACH waits for a lock: while it waits for a default part, readers of that wait behind it. */
const LOCK_WAIT_MS = 3_000;
/** Bytes of a table's name. */
const MAX_NAME = 63;
/** A table, its type or a range of it was there already: somebody was quicker, or has a table of that name. */
const IN_THE_WAY = new Set(['42P07', '42P17', '42710', '23505']);

/**
 * Makes the parts of the target that the window's rows need and that are not there, each for just the window, in a short
 * transaction of its own: all of them or none. Where they are there it writes nothing. Those who make the same one at once make
 * it once. Readers and writers of the other parts go on: a table is made and attached, since PARTITION OF would lock them out;
 * only a default part is locked, and read through.
 *
 * Throws `InvalidPipeline` where the target is not partitioned by RANGE on the partition column alone, `PermissionDenied` where
 * the role may not make a part, `SchemaMismatch` where a table of its name or rows in the default part are in the way,
 * `Conflict` where a lock was not got.
 */
export async function createMissingPartition(database: Database, request: FillRequest, fence: number): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await withSession(database, request.signal, (session) => createOnce(session, database, request, fence));
    } catch (error) {
      const code = sqlstate(error) ?? '';
      if (code === '55P03' && tries >= TRIES) throw lockNotGot(request);
      // Another look tells a part that somebody has made meanwhile from a stranger's table.
      if (code !== '55P03' && !(IN_THE_WAY.has(code) && tries === 1)) throw explained(error, request);
    }
  }
}

async function createOnce(session: Session, database: Database, request: FillRequest, fence: number): Promise<void> {
  const { pipeline, window } = request;
  await begin(session, database, {
    applicationName: attemptName(request.owner, fence),
    zone: pipeline.partition.zone,
    lockTimeoutMs: LOCK_WAIT_MS,
    statementTimeoutMs: request.timeLeftMs,
  });
  const target = await readTarget(session, pipeline);
  if ((await missingParts(session, pipeline, target, window)).length > 0) {
    await takeParts(session, target);
    await makeMissingParts(session, request, target);
  }
  await commit(session);
}

/**
 * Makes the missing parts of a window within the session's transaction, as {@link createMissingPartition} does in its own, and
 * returns what was missing.
 */
export async function makeMissingParts(
  session: Session,
  { pipeline, window }: Pick<FillRequest, 'pipeline' | 'window'>,
  target: Target,
): Promise<readonly MissingPart[]> {
  const missing = await missingParts(session, pipeline, target, window);
  for (const [i, part] of missing.entries()) await makePart(session, part, partName(part.parent.table, window.key, i));
  return missing;
}

async function makePart(session: Session, { parent, lower, upper }: MissingPart, name: string): Promise<void> {
  const above = `${quoted(parent.schema)}.${quoted(parent.table)}`;
  const part = `${quoted(parent.schema)}.${quoted(name)}`;
  // Its owner is to be the parent's, as that of the other parts, whoever of its members makes it.
  if (!parent.own) await session.query(`SET LOCAL ROLE ${quoted(parent.owner)}`);
  // ATTACH makes the indexes, and identity columns count for the whole table by its sequence.
  await session.query(
    `CREATE TABLE ${part} (LIKE ${above} INCLUDING ALL EXCLUDING INDEXES EXCLUDING IDENTITY)` +
      (parent.tablespace === null ? '' : ` TABLESPACE ${quoted(parent.tablespace)}`),
  );
  if (parent.identityFull) await session.query(`ALTER TABLE ${part} REPLICA IDENTITY FULL`);
  // Takes no bound values; the server has written these itself.
  await session.query(
    `ALTER TABLE ${above} ATTACH PARTITION ${part} FOR VALUES FROM (${pg.escapeLiteral(lower)}) TO (${pg.escapeLiteral(upper)})`,
  );
  if (!parent.own) await session.query('RESET ROLE');
}

/**
 * The name of a part: the table's and the key's, `sales_2024_02_29`, the table's cut where both are too long. `nth` counts the
 * parts that one window needs, from 0.
 */
export function partName(table: string, key: string, nth: number): string {
  const end = `_${key.toLowerCase().replace(/[^a-z0-9]+/g, '_')}${nth === 0 ? '' : `_${nth + 1}`}`;
  if (Buffer.byteLength(table + end) <= MAX_NAME) return table + end;
  const hash = `_${createHash('sha256').update(table).digest('hex').slice(0, 8)}`;
  let cut = table;
  while (Buffer.byteLength(cut + hash + end) > MAX_NAME) cut = [...cut].slice(0, -1).join('');
  return cut + hash + end;
}

function lockNotGot({ pipeline, window }: FillRequest): Failure {
  return new Failure(
    'Conflict',
    `The part of the target of ${pipeline.name} for ${window.key} could not be made: another session holds a lock on the table that ALTER TABLE … ATTACH PARTITION waits for, as VACUUM, CREATE INDEX and ALTER TABLE do, or reads its default part. It is tried again.`,
    { sqlstate: '55P03', retryAfterMs: 5_000 },
  );
}

/** What a server's error means for the making of a part: a `Failure`, or the error itself where it means nothing special. */
export function explained(error: unknown, { pipeline, window }: FillRequest): unknown {
  const code = sqlstate(error);
  const what = `The part of the target of ${pipeline.name} for ${window.key} could not be made (\`create: true\`): PostgreSQL answered ${code}`;
  if (code === undefined) return error;
  if (IN_THE_WAY.has(code)) {
    return new Failure(
      'SchemaMismatch',
      `${what}, since a table or a type of the name that it would have is there and is no part of the target. Attach it, rename it or drop it.`,
      { sqlstate: code },
    );
  }
  if (code === '23514') {
    return new Failure(
      'SchemaMismatch',
      `${what}, since the default part of the table holds rows of its time. Move them: detach the default part, insert its rows into the table, and attach it again empty; or leave \`create\` out. The old rows stand.`,
      { sqlstate: code },
    );
  }
  if (code === '42501') {
    return new Failure(
      'PermissionDenied',
      `${what}. Repave's role must be the table's owner or a member of it (GRANT owner TO role), and the owner may create in the table's schema (GRANT CREATE ON SCHEMA … TO owner).`,
      { sqlstate: code },
    );
  }
  return error;
}
