import { readdir, readFile } from 'node:fs/promises';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from './database.js';
import { toFailure } from './errors.js';
import { quoted, quotedTable } from './identifier.js';
import { identify } from './transaction.js';
import { withSession } from './with-session.js';

interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

/** `current`: this version's. `newer`: a later version of Repave has migrated it, and this one must not write to it. */
export type LedgerState = 'missing' | 'older' | 'current' | 'newer';

const FOLDER = new URL('./migrations/', import.meta.url);
/** An advisory lock of one int8 that no table's grid has: its lower half, a table's oid, is 0 there. */
export const REGISTRY_LOCK = (BigInt(0x52455041) << 32n).toString();

async function migrations(): Promise<readonly Migration[]> {
  const names = (await readdir(FOLDER)).filter((name) => /^\d{6}_.*\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => ({
      number: Number(name.slice(0, 6)),
      name: name.replace(/\.sql$/, ''),
      sql: await readFile(new URL(name, FOLDER), 'utf8'),
    })),
  );
}

/** What the database's ledger is to this version of Repave. Writes nothing. Throws where it may not be read or reached. */
export async function ledgerState(database: Database): Promise<LedgerState> {
  const known = await migrations();
  const applied = await appliedNumbers(database);
  if (applied.length === 0) return 'missing';
  const newest = Math.max(...known.map(({ number }) => number));
  if (applied.some((number) => number > newest)) return 'newer';
  return known.every(({ number }) => applied.includes(number)) ? 'current' : 'older';
}

async function appliedNumbers(database: Database): Promise<number[]> {
  const [there] = await database.query<{ oid: number | null }>(
    `SELECT c.oid::pg_catalog.int8::pg_catalog.float8 AS oid FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = 'repave' AND c.relname = 'migration'`,
  );
  if (!there) return [];
  return (await database.query<{ number: number }>('SELECT number FROM repave.migration')).map(({ number }) => number);
}

/** The migrations that are still to run, as SQL, in order. Writes nothing. */
export async function pendingMigrations(
  database: Database,
): Promise<readonly { readonly name: string; readonly sql: string }[]> {
  const applied = await appliedNumbers(database);
  return (await migrations()).filter(({ number }) => !applied.includes(number));
}

/** Whether this role may make or upgrade the ledger: it owns the schema, or may create it. */
export async function mayMigrate(database: Database): Promise<boolean> {
  const [row] = await database.query<{ may: boolean }>(
    `SELECT coalesce((SELECT pg_catalog.pg_has_role(nspowner, 'USAGE') FROM pg_catalog.pg_namespace WHERE nspname = 'repave'),
                     pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')) AS may`,
  );
  return row?.may ?? false;
}

/**
 * Makes or upgrades the ledger: all that is pending in one transaction, under a lock, so that any number of processes may
 * try at once. Forward only. Returns the names of what was applied.
 * Throws `InvalidInput` for a ledger newer than this version, `PermissionDenied` where the role may not.
 */
export async function migrate(database: Database): Promise<string[]> {
  const known = await migrations();
  try {
    return await withSession(database, new AbortController().signal, async (session) => {
      // Read committed whatever the role's default: what another process has applied must be seen once the lock is ours.
      await session.query('BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE');
      // From here on a long migration, or a wait for the lock, is told apart from a connection that is dead.
      await identify(session, 'repave migrate');
      await session.query(`SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
                                  pg_catalog.set_config('statement_timeout', '0', true), pg_catalog.set_config('lock_timeout', '0', true)`);
      await session.query('SELECT pg_catalog.pg_advisory_xact_lock($1::pg_catalog.int8)', [REGISTRY_LOCK]);
      const schema = await session.rows(`SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'repave'`);
      if (schema.length === 0) await session.query('CREATE SCHEMA repave');
      await session.query(`CREATE TABLE IF NOT EXISTS repave.migration (
        number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT pg_catalog.now())`);
      const applied = (await session.rows<{ number: number }>('SELECT number FROM repave.migration')).map(
        ({ number }) => number,
      );
      refuseNewer(applied, known);
      const pending = known.filter(({ number }) => !applied.includes(number));
      for (const { number, name, sql } of pending) {
        await session.query(sql);
        await session.query('INSERT INTO repave.migration (number, name) VALUES ($1, $2)', [number, name]);
      }
      await session.query('COMMIT');
      return pending.map(({ name }) => name);
    });
  } catch (error) {
    // Migrations read no user's rows.
    throw toFailure(error, { beforeRows: true });
  }
}

function refuseNewer(applied: readonly number[], known: readonly Migration[]): void {
  const newest = Math.max(0, ...known.map(({ number }) => number));
  const beyond = applied.filter((number) => number > newest);
  if (beyond.length > 0) {
    throw new Failure(
      'InvalidInput',
      `The ledger has migration ${Math.max(...beyond)}, and this version of Repave knows up to ${newest}. Run the newer version.`,
    );
  }
}

/**
 * The GRANTs that a worker's role needs and no more: on the ledger, and on each pipeline's target. What the queries read is
 * not listed: grant SELECT on that yourself, as {@link grantNotes} says.
 */
export function grantsFor(role: string, database: string, pipelines: Iterable<Pipeline>): string[] {
  const to = `TO ${quoted(role)};`;
  const all = [...pipelines];
  const targets = all.flatMap(({ target }) => [
    ...(target.schema === undefined ? [] : [`GRANT USAGE ON SCHEMA ${quoted(target.schema)} ${to}`]),
    `GRANT SELECT, INSERT, DELETE ON ${quotedTable(target)} ${to}`,
  ]);
  return [
    `GRANT CONNECT ON DATABASE ${quoted(database)} ${to}`,
    // New rows are held beside the old while they are compared.
    ...(all.some(({ skipUnchanged }) => skipUnchanged) ? [`GRANT TEMP ON DATABASE ${quoted(database)} ${to}`] : []),
    `GRANT USAGE ON SCHEMA repave ${to}`,
    `GRANT SELECT ON repave.ledger, repave.migration ${to}`,
    `GRANT SELECT, INSERT, UPDATE ON repave.pipeline, repave.partition, repave.backfill ${to}`,
    `GRANT SELECT, INSERT, UPDATE, DELETE ON repave.claim ${to}`,
    `GRANT EXECUTE ON FUNCTION repave.carry_over(text, text) ${to}`,
    `GRANT SELECT, INSERT ON repave.fill, repave.failure, repave.run_key, repave.notice ${to}`,
    ...new Set(targets),
  ];
}

/** What a worker's role needs besides {@link grantsFor}, and only people can decide or know: SQL comments, a line each. */
export function grantNotes(role: string, pipelines: Iterable<Pipeline>): string[] {
  const all = [...pipelines];
  const to = quoted(role);
  const created = all
    .filter(({ create }) => create)
    .map(
      ({ name, target }) =>
        `${name} has create: true, so ${to} must own ${quotedTable(target)} or be a member of its owner (GRANT its owner TO ${to}), which may create in its schema (GRANT CREATE ON SCHEMA … TO its owner).`,
    );
  const reads =
    all.length > 0
      ? [
          `What the queries read is yours to grant, as the owner of it: GRANT USAGE ON SCHEMA … and GRANT SELECT ON … TO ${to}.`,
        ]
      : [];
  // A name may hold a line break, behind which a comment would be none.
  return [...created, ...reads].map((note) => `-- ${note.replace(/\s/g, ' ')}`);
}
