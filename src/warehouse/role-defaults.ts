import pg from 'pg';

/** What a session of our role begins with, as far as it bears on a statement that we run outside a fill's transaction. */
export interface RoleDefaults {
  /** The role's and database's own search path, before any session changed it. */
  readonly path: string;
  readonly readOnly: string;
  readonly isolation: string;
  readonly statementTimeout: string;
  readonly lockTimeout: string;
  /** null before PostgreSQL 17. */
  readonly transactionTimeout: string | null;
}

/** The {@link RoleDefaults} as columns of a SELECT. The operator by its full name, since the path is not known yet. */
export const ROLE_DEFAULTS = `
  (SELECT reset_val FROM pg_catalog.pg_settings WHERE name OPERATOR(pg_catalog.=) 'search_path'::pg_catalog.text) AS path,
  pg_catalog.current_setting('default_transaction_read_only') AS "readOnly",
  pg_catalog.current_setting('default_transaction_isolation') AS isolation,
  pg_catalog.current_setting('statement_timeout') AS "statementTimeout",
  pg_catalog.current_setting('lock_timeout') AS "lockTimeout",
  pg_catalog.current_setting('transaction_timeout', true) AS "transactionTimeout"`;

/**
 * SQL that begins a transaction in which a single statement of ours means what it says; undefined where it does so in
 * autocommit, as under most roles. (Not everything is pinned: these statements read and write the ledger and the catalog,
 * by full names, and hold no literal that a setting could change.)
 */
export function beginAlone(defaults: RoleDefaults, readOnly = false): string | undefined {
  const plain =
    (readOnly || defaults.readOnly === 'off') &&
    defaults.isolation === 'read committed' &&
    [defaults.statementTimeout, defaults.lockTimeout, defaults.transactionTimeout ?? '0'].every((at) => at === '0') &&
    !/\bpg_catalog\b/i.test(defaults.path);
  if (plain) return undefined;
  return [
    `BEGIN ISOLATION LEVEL READ COMMITTED ${readOnly ? 'READ ONLY' : 'READ WRITE'}`,
    `SELECT pg_catalog.set_config('search_path', ${pg.escapeLiteral(pinnedPath(defaults.path))}, true)`,
    'SET LOCAL statement_timeout = 0',
    'SET LOCAL lock_timeout = 0',
    ...(defaults.transactionTimeout === null ? [] : ['SET LOCAL transaction_timeout = 0']),
  ].join('; ');
}

/** pg_catalog first and temporary tables last, whatever is between: nobody's object stands in for a built-in or a source. */
export function pinnedPath(own: string): string {
  const between = (own.match(/(?:"(?:[^"]|"")*"|[^,"])+/g) ?? [])
    .map((schema) => schema.trim())
    .filter((schema) => schema !== '' && !/^(?:pg_temp|"pg_temp")$/i.test(schema));
  return ['pg_catalog', ...between, 'pg_temp'].join(', ');
}
