import type { Database } from './database.js';

/** What fills of a pipeline have taken lately. */
export interface FillPace {
  /** How many fills it is known from; at least one. */
  readonly fills: number;
  /** Of one fill, on average. */
  readonly seconds: number;
}

/** Fills that are looked at. */
const RECENT = 100;

/** The pace of a pipeline's newest fills; undefined where it has none. Rows that were adopted took no fill. */
export async function fillPace(database: Database, pipeline: string): Promise<FillPace | undefined> {
  const [pace] = await database.query<FillPace>(
    `SELECT pg_catalog.count(*)::pg_catalog.float8 AS fills, pg_catalog.avg(seconds) AS seconds
       FROM (SELECT seconds, adopted FROM repave.fill WHERE pipeline = $1 ORDER BY filled_at DESC LIMIT ${RECENT}) AS recent
      WHERE NOT adopted`,
    [pipeline],
  );
  return pace && pace.fills > 0 ? pace : undefined;
}
