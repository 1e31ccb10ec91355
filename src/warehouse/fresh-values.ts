import { type PipelineWarning, setting } from './pipeline-problem.js';
import type { Session } from './session.js';
import type { Target } from './target.js';

/** A column of the target that the query leaves to the table, which gives each fill's rows values of their own. */
export interface FreshColumn {
  readonly name: string;
  readonly type: string;
  /** The default as SQL; `identity`. */
  readonly value: string;
  /** `stable`: one value a fill, such as now(). */
  readonly kind: 'identity' | 'volatile' | 'stable' | 'constant';
}

// The tree of an expression names its functions by number, built-in ones too, which pg_depend leaves out. CURRENT_TIMESTAMP and
// its like are nodes of their own.
const DEFAULTS = `
SELECT a.attname::pg_catalog.text AS name, pg_catalog.format_type(a.atttypid, a.atttypmod) AS type,
       CASE WHEN a.attidentity <> '' THEN 'identity' ELSE pg_catalog.pg_get_expr(d.adbin, d.adrelid) END AS value,
       CASE WHEN a.attidentity <> '' THEN 'identity'
            WHEN called.worst = 'v' THEN 'volatile'
            WHEN called.worst = 's' OR d.adbin::pg_catalog.text LIKE '%{SQLVALUEFUNCTION %' THEN 'stable'
            ELSE 'constant' END AS kind
  FROM pg_catalog.pg_attribute a
  LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
 CROSS JOIN LATERAL (
   SELECT pg_catalog.max(p.provolatile::pg_catalog.text) AS worst
     FROM pg_catalog.regexp_matches(d.adbin::pg_catalog.text, ':(?:funcid|opfuncid) ([0-9]+)', 'g') AS found
     JOIN pg_catalog.pg_proc p ON p.oid = found[1]::pg_catalog.oid) called
 WHERE a.attrelid = $1::pg_catalog.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
   AND (a.attidentity <> '' OR d.oid IS NOT NULL) AND NOT a.attname = ANY ($2::pg_catalog.name[])
 ORDER BY a.attnum`;

/** The columns that a fill does not write and the table gives a value. */
export async function columnsLeftToTheTable(
  session: Session,
  target: Pick<Target, 'oid'>,
  written: readonly string[],
): Promise<FreshColumn[]> {
  return session.rows<FreshColumn>(DEFAULTS, [target.oid, written]);
}

/** A warning for each column whose values are others after every fill of the same rows. */
export function freshWarnings(columns: readonly FreshColumn[], target: string): PipelineWarning[] {
  return columns
    .filter(({ kind }) => kind === 'identity' || kind === 'volatile')
    .map(({ name, value, kind }) => ({
      message:
        `${JSON.stringify(name)} of ${target} ${kind === 'identity' ? 'is an identity column' : `has the default ${value}`}, and the rows leave it out: ` +
        'each fill of a partition gives its rows new values. What refers to them, here or elsewhere, loses them.',
      place: setting('target'),
    }));
}
