import type { Check, Query } from '../pipeline/pipeline.js';

/** Characters of a query that has no name of its own. */
const SHOWN_QUERY = 60;

/** A check as messages, warnings and the ledger name it: `rows (min 1)`, `range (revenue)`, `sql (no orphans)`. */
export function checkName(check: Check): string {
  switch (check.kind) {
    case 'rows': {
      const limits = [
        check.min !== undefined ? `min ${check.min}` : '',
        check.max !== undefined ? `max ${check.max}` : '',
      ];
      return `rows (${limits.filter(Boolean).join(', ')})`;
    }
    case 'change':
      return `change (max ${check.maxPercent} %)`;
    case 'unique':
    case 'not_null':
      return `${check.kind} (${check.columns.join(', ')})`;
    case 'accepted':
    case 'range':
    case 'sum':
      return `${check.kind} (${check.column})`;
    case 'sql':
      return `sql (${check.name ?? shown(check.query)})`;
    default:
      return check satisfies never;
  }
}

/** The beginning of a query as the file says it, on one line. */
function shown({ pieces, slots }: Query): string {
  const written = pieces.map((piece, i) => `${piece}${slots[i] ? `:${slots[i].name}` : ''}`).join('');
  const line = written.replace(/\s+/g, ' ').trim();
  return line.length > SHOWN_QUERY ? `${line.slice(0, SHOWN_QUERY - 1)}…` : line;
}
