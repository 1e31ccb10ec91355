import pg from 'pg';
import type { Window } from '../calendar/calendar.js';
import type { Query } from '../pipeline/pipeline.js';
import { parameterValues } from './parameter-values.js';

/**
 * A query with its parameters' values for one window in its text, each quoted by the driver and cast: for COPY, which takes
 * no bound values. They are the calendar's own, and no text of theirs can end its quotes.
 */
export function quotedQuery(query: Query, window: Window): string {
  const values = parameterValues(
    query.slots.map(({ name }) => name),
    window,
  );
  return query.pieces
    .map((piece, i) => {
      const slot = query.slots[i];
      return slot ? `${piece}(${pg.escapeLiteral(values[i] ?? '')}::${slot.type})` : piece;
    })
    .join('');
}
