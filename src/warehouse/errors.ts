import pg from 'pg';
import type { FailureType } from '../contract.js';
import { Failure } from '../failure.js';

/** Why a failure that a server's error names is what it is, and what to do. `{constraint}` and the like are names, never values. */
interface Meaning {
  readonly type: FailureType;
  readonly advice: string;
  readonly retryAfterMs?: number;
}

/** Milliseconds before a full disk is tried again: every try leaves dead pages behind. */
const DISK_FULL_DELAY_MS = 60_000;

/**
 * What a SQLSTATE means: whole codes first, then classes. https://www.postgresql.org/docs/current/errcodes-appendix.html
 * 57014 is here what nobody of us asked for: a cancel of ours is told apart by who asked, since the text is localised.
 */
const CODES: Readonly<Record<string, Meaning>> = {
  '53100': {
    type: 'DatabaseUnavailable',
    advice: 'The disk of the database is full.',
    retryAfterMs: DISK_FULL_DELAY_MS,
  },
  '53200': {
    type: 'DatabaseUnavailable',
    advice: 'The database is out of memory or of lock slots (see its setting max_locks_per_transaction).',
  },
  '53300': {
    type: 'DatabaseUnavailable',
    advice: 'The database has no connection left (see its setting max_connections).',
  },
  '57014': { type: 'TimedOut', advice: 'The statement was ended by a time limit or by somebody.' },
  '57P01': { type: 'DatabaseUnavailable', advice: 'The connection was ended by the server or by an administrator.' },
  '57P02': { type: 'DatabaseUnavailable', advice: 'The database crashed and starts again.' },
  '57P03': { type: 'DatabaseUnavailable', advice: 'The database is starting up or shutting down.' },
  '57P05': { type: 'DatabaseUnavailable', advice: 'The server ended an idle connection.' },
  '25006': {
    type: 'DatabaseUnavailable',
    advice: 'The server is read-only: a standby, or one that is being switched over.',
  },
  '25P03': { type: 'DatabaseUnavailable', advice: 'The server ended a transaction that stood idle.' },
  '25P04': { type: 'DatabaseUnavailable', advice: 'The server ended a transaction that took too long.' },
  '26000': { type: 'DatabaseUnavailable', advice: 'A pooler handed over another connection.' },
  '55P03': { type: 'Conflict', advice: 'Another session holds a lock on the table.' },
  '42501': {
    type: 'PermissionDenied',
    advice: 'Print the grants that Repave needs with `repave migrate --role ROLE --dry-run`.',
  },
  '42601': { type: 'InvalidPipeline', advice: 'Mend the query.' },
  '42702': { type: 'InvalidPipeline', advice: 'Mend the query.' },
  '42P01': { type: 'SchemaMismatch', advice: 'Create it, or mend the pipeline.' },
  '42703': { type: 'SchemaMismatch', advice: 'Mend the query or the table.' },
  '42804': { type: 'SchemaMismatch', advice: 'Cast it in the query, or mend the table.' },
  '42846': { type: 'SchemaMismatch', advice: 'Cast it in the query, or mend the table.' },
  '42883': { type: 'SchemaMismatch', advice: 'Mend the query: a function or operator of these types is not there.' },
  '23503': {
    type: 'DataError',
    advice:
      'The new rows refer to one that is not there; or others refer to rows that the fill replaces, and then the constraint must be DEFERRABLE INITIALLY DEFERRED. The old rows stand.',
  },
  '428C9': { type: 'SchemaMismatch', advice: 'Leave generated columns out of the query.' },
  '55000': {
    type: 'InvalidPipeline',
    advice: 'If the table is published, it needs a replica identity: ALTER TABLE … REPLICA IDENTITY …',
  },
};

/** Routines of the server, each with a code, whose errors mean more than the code says. */
const ROUTINES: Readonly<Record<string, Meaning>> = {
  // The plan of a statement that a table's change made void; the next try plans anew.
  'RevalidateCachedQuery 0A000': { type: 'Conflict', advice: 'A table changed while it was read.' },
  'ExecFindPartition 23514': {
    type: 'DataError',
    advice: 'No partition of the table takes one of the new rows: create it. The old rows stand.',
  },
  'call_string_check_hook 22023': {
    type: 'InvalidPipeline',
    advice:
      'The server refused a setting of the session: it has no time zone of the name that `zone` gives (see its pg_timezone_names), or the query sets what it may not.',
  },
  'CheckMyDatabase 55000': { type: 'DatabaseUnavailable', advice: 'The database takes no connections for now.' },
};

const CLASSES: Readonly<Record<string, Meaning>> = {
  '08': { type: 'DatabaseUnavailable', advice: 'The connection to the database was lost.' },
  '21': { type: 'DataError', advice: 'A subquery gave more than one row.' },
  '22': {
    type: 'DataError',
    advice: 'A value could not be read, cast or stored. Run the query by hand for this partition to see which.',
  },
  '23': { type: 'DataError', advice: 'The new rows break it; the old rows stand.' },
  '27': { type: 'DataError', advice: 'A trigger changed rows that the fill was changing.' },
  '28': { type: 'DatabaseUnavailable', advice: 'The database refused the login.' },
  '38': { type: 'DataError', advice: 'A function failed.' },
  '39': { type: 'DataError', advice: 'A function failed.' },
  '3D': { type: 'DatabaseUnavailable', advice: 'The database that the URL names is not there.' },
  '40': { type: 'Conflict', advice: 'The database rolled the transaction back, since it met another.' },
  '42': { type: 'InvalidPipeline', advice: 'Mend the query.' },
  '44': { type: 'DataError', advice: 'The new rows break a view’s check option.' },
  '53': { type: 'DatabaseUnavailable', advice: 'The database is short of a resource.' },
  '54': { type: 'DataError', advice: 'A limit of the database was passed.' },
  '57': { type: 'DatabaseUnavailable', advice: 'The connection was ended by the server.' },
  P0: {
    type: 'DataError',
    advice: 'A function or trigger raised an error. Its text may hold values of rows, so it is not repeated here.',
  },
};

/** Codes that node gives a socket or a name look-up. */
const NEVER_MADE = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'EAI_AGAIN', 'ENOENT']);
const NETWORK = new Set([
  ...NEVER_MADE,
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_STREAM_DESTROYED',
  'ERR_STREAM_WRITE_AFTER_END',
]);

/** Codes that node gives a failed TLS handshake. */
const TLS = /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|CERT_|SELF_SIGNED_|DEPTH_ZERO_|UNABLE_TO_|HOSTNAME_MISMATCH)/;

/**
 * Server functions whose message names objects and nothing else. Any other message may hold a value of a row: that of
 * 22P02 does, and RAISE says what it likes under any code.
 */
const NAMING_ROUTINES = new Set([
  'aclcheck_error',
  'parserOpenTable',
  'errorMissingColumn',
  'errorMissingRTE',
  'check_enable_rls',
]);

/**
 * The server's own files whose errors name constraint, column and table after the catalog. Any other may name what it
 * likes: RAISE … USING CONSTRAINT = NEW.secret.
 */
const NAMING_FILES = new Set([
  'execMain.c',
  'execPartition.c',
  'execIndexing.c',
  'execExprInterp.c',
  'nbtinsert.c',
  'ri_triggers.c',
  'domains.c',
]);

/**
 * Says what an error of the database means, without a value of any row: SQLSTATE, names of constraint, table and column,
 * and what to do. A `Failure` comes back as it is. Never throws.
 *
 * `beforeRows`: the statement was only parsed, so the server's own message can hold no value of a row and is repeated.
 */
export function toFailure(error: unknown, options: { readonly beforeRows?: boolean } = {}): Failure {
  if (error instanceof Failure) return error;
  if (error instanceof pg.DatabaseError) return fromServer(error, options.beforeRows ?? false);
  if (isLostConnection(error)) return new Failure('DatabaseUnavailable', describeLoss(error));
  return new Failure(
    'Unexpected',
    `${describeThrown(error)}. This is a defect of Repave or of a library: please report it.`,
  );
}

/** The class of an error, as far as that is a name: a program may put anything there. */
export function errorClass(error: Error): string {
  return /^[A-Za-z_$][\w$]{0,59}$/.test(error.name) ? error.name : 'Error';
}

/** Class, code and place of what was thrown. Not its message, which may hold a row's values. */
function describeThrown(error: unknown): string {
  if (!(error instanceof Error)) return `A ${typeof error} was thrown`;
  const place = /\(?([^\s()]*[\\/])?([^\s()\\/]+:\d+:\d+)\)?/.exec(
    error.stack?.split('\n').find((line) => /^\s+at /.test(line)) ?? '',
  )?.[2];
  return [errorClass(error), codeOf(error) ? ` (${codeOf(error)})` : '', place ? ` at ${place}` : ''].join('');
}

/** The SQLSTATE of a server's error, or undefined. */
export function sqlstate(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined;
}

function fromServer(error: pg.DatabaseError, beforeRows: boolean): Failure {
  const code = error.code ?? '';
  const meaning: Meaning | undefined = ROUTINES[`${error.routine} ${code}`] ?? CODES[code] ?? CLASSES[code.slice(0, 2)];
  // A statement that a function has put together, of values perhaps, says so by its context.
  const nested = error.where !== undefined || error.internalQuery !== undefined;
  const quotable = beforeRows || (NAMING_ROUTINES.has(error.routine ?? '') && !nested);
  const what = [
    `PostgreSQL answered ${code || 'an error without a code'}`,
    quotable ? `: ${error.message}` : '',
    beforeRows || NAMING_FILES.has(error.file ?? '') ? namesIn(error) : '',
    copyLine(error),
    '.',
  ].join('');
  return new Failure(
    meaning?.type ?? (code.startsWith('0A') ? 'InvalidPipeline' : 'Unexpected'),
    meaning ? `${what} ${meaning.advice}` : what,
    {
      sqlstate: code,
      retryAfterMs: meaning?.retryAfterMs,
    },
  );
}

function namesIn(error: pg.DatabaseError): string {
  const named = [
    error.constraint && `constraint ${quote(error.constraint)}`,
    error.column && `column ${quote(error.column)}`,
    error.table && `table ${quote(error.schema ? `${error.schema}.${error.table}` : error.table)}`,
  ].filter(Boolean);
  return named.length > 0 ? ` (${named.join(', ')})` : '';
}

/** A streamed row's number and the column, out of the error's context, which otherwise holds the value or the row itself. */
function copyLine(error: pg.DatabaseError): string {
  const [, line, column] =
    /^COPY [^\n]*?, line (\d+)(?:, column ([^\n]*?): (?:"|null input))?/m.exec(error.where ?? '') ?? [];
  if (!line) return '';
  return ` in row ${line}${column ? `, column ${quote(column)}` : ''}`;
}

function isLostConnection(error: unknown): boolean {
  const code = codeOf(error);
  if (code !== undefined && (NETWORK.has(code) || TLS.test(code))) return true;
  const message = error instanceof Error ? error.message : '';
  // The driver gives these no code, and pg-copy-streams a TypeError for a stream whose connection has gone.
  return (
    /^(Connection terminated|The connection was closed|Client (has encountered|was closed)|timeout (expired|exceeded)|Query read timeout|Cannot use a pool|The session was cancelled|The server does not support SSL|There was an error establishing an SSL)/.test(
      message,
    ) ||
    message.includes("reading 'stream'") ||
    message.includes('Client was closed and is not queryable')
  );
}

function describeLoss(error: unknown): string {
  const message = error instanceof Error ? error.message : '';
  if (message.startsWith('timeout exceeded'))
    return 'No connection came free in time: all that this worker may open are in use.';
  const code = codeOf(error);
  const unmade =
    NEVER_MADE.has(code ?? '') || TLS.test(code ?? '') || /connection timeout$|^timeout expired|\bSSL\b/.test(message);
  return `The connection to the database ${unmade ? 'could not be made' : 'was lost'}${code ? ` (${code})` : ''}.`;
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null) return undefined;
  if ('code' in error && typeof error.code === 'string') return error.code;
  // Several addresses of one name were tried.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return undefined;
}

function quote(name: string): string {
  return JSON.stringify(name);
}
