import type { Statement, StatementHooks, StatementKind } from '../support/statements.js';

type Rewrite = NonNullable<StatementHooks['rewrite']>;

/** A protocol that lacks one of its parts. Each must be caught by a test that the whole protocol passes. */
export const BROKEN_VARIANTS = [
  'no window lock',
  'lock inside the DELETE’s statement',
  'no guard',
  'no claim guard',
  'one fence for all runs',
  'attempts ordered by number alone',
  'holders that a claim has replaced are left',
  'overdue holders are left',
] as const;
export type BrokenVariant = (typeof BROKEN_VARIANTS)[number];

/**
 * The rewriting of Repave's SQL that makes a broken variant; one for each fill, since it remembers the fill's lock.
 * `blind`: the fill's own looks at the window, behind its DELETE and its INSERT, see no other session's rows either.
 */
export function rewriteFor(variant: BrokenVariant, options: { readonly blind?: boolean } = {}): Rewrite {
  const broken = make(variant);
  return (statement) => broken(statement) ?? (options.blind ? blinded(statement) : undefined);
}

function make(variant: BrokenVariant): Rewrite {
  switch (variant) {
    case 'no window lock':
      return ({ kind, values }) => (kind === 'lock' ? { text: NO_LOCK, values } : undefined);
    case 'lock inside the DELETE’s statement':
      return lockInDelete();
    case 'no guard':
      // The claim is left alone, so that nothing waits for it either.
      return rewriting('guard', /DELETE FROM repave\.claim[^]*?RETURNING fence/, 'SELECT $4::pg_catalog.int8 AS fence');
    case 'no claim guard':
      return rewriting('claim', /WHERE NOT c\.closed AND[^\n]*\n/, '\n');
    case 'one fence for all runs':
      return sharedClaim;
    case 'attempts ordered by number alone':
      return rewriting(
        'claim',
        /\(c\.scheduled_at, c\.attempt\) <= \(excluded\.scheduled_at, excluded\.attempt\)/,
        'c.attempt <= excluded.attempt',
      );
    case 'holders that a claim has replaced are left':
      return rewriting('end-backends', /OR c\.fence > [^]*?\$7/, 'OR $6 = $7');
    case 'overdue holders are left':
      return rewriting('end-backends', /c\.deadline < pg_catalog\.clock_timestamp\(\)/, 'false');
    default:
      return variant satisfies never;
  }
}

function rewriting(kind: StatementKind, pattern: RegExp, by: string): Rewrite {
  return (statement) =>
    statement.kind === kind ? { text: replaced(statement.text, pattern, by), values: statement.values } : undefined;
}

const NO_LOCK = 'SELECT $1::pg_catalog.int8, $2::pg_catalog.int4, $3::pg_catalog.int4';

function lockInDelete(): Rewrite {
  let lock: readonly unknown[] | undefined;
  return ({ kind, text, values }) => {
    if (kind === 'lock') {
      lock = values;
      return { text: NO_LOCK, values };
    }
    if (kind !== 'delete' || !lock) return undefined;
    const [, space, window] = lock;
    return {
      text: `WITH locked AS MATERIALIZED (SELECT pg_advisory_xact_lock(${Number(space)}, ${Number(window)}))
             ${text} AND EXISTS (SELECT FROM locked)`,
      values,
    };
  };
}

const OWN_ROWS = 'xmin::text = (pg_current_xact_id()::text::int8 & 4294967295)::text';

function blinded({ kind, text, values }: Statement): ReturnType<Rewrite> {
  if (kind === 'kept') return { text: replaced(text, /\)\s*AS kept/, ` AND ${OWN_ROWS}) AS kept`), values };
  if (kind === 'count') return { text: `${text} AND ${OWN_ROWS}`, values };
  return undefined;
}

/** Every run's claim of a partition is one row, as if the fence ordered runs and not a run's attempts. */
function sharedClaim({ kind, text, values }: Statement): ReturnType<Rewrite> {
  switch (kind) {
    case 'claim':
      return {
        text: replaced(
          replaced(text, /SELECT \$1, \$2, \$3,/, `SELECT $1, $2, CASE WHEN $3 = '' THEN $3 ELSE 'shared' END,`),
          /WHERE NOT c\.closed AND[^\n]*\n/,
          'WHERE NOT c.closed\n',
        ),
        values,
      };
    case 'look':
      return { text: replaced(text, /(FROM repave\.claim\s+WHERE [^)]*?)run = \$4/, `$1run = 'shared'`), values };
    case 'guard':
      return { text: replaced(text, /(DELETE FROM repave\.claim[^]*?)run = \$3/, `$1run = 'shared'`), values };
    default:
      return undefined;
  }
}

/** A variant that no longer fits Repave's SQL would prove nothing: it fails here. */
function replaced(text: string, pattern: RegExp, by: string): string {
  if (!pattern.test(text)) throw new Error(`The broken variant does not fit this statement: ${text}`);
  return text.replace(pattern, by);
}
