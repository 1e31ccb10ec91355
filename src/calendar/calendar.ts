/** The units a table can be partitioned by. */
export const GRANULARITIES = ['hour', 'day', 'week', 'month', 'quarter', 'year'] as const;
export type Granularity = (typeof GRANULARITIES)[number];

/** Whether a text, such as the ledger's, names a unit that this version knows. */
export function isGranularity(by: string): by is Granularity {
  return (GRANULARITIES as readonly string[]).includes(by);
}

/** A calendar: units of one granularity in one IANA time zone. Hours are UTC's whatever the zone. */
export interface Grid {
  readonly by: Granularity;
  readonly zone: string;
}

/** One partition's time, half-open. */
export interface Window {
  readonly key: string;
  /** ISO instants with `Z`: `2024-02-29T00:00:00Z`. */
  readonly start: string;
  readonly end: string;
  /** The window's local dates, half-open: `endDate` is the next partition's `date`. */
  readonly date: string;
  readonly endDate: string;
  /** Wall time in the zone, `2024-02-29T00:00:00`: what a `timestamp` column is compared with. */
  readonly localStart: string;
  readonly localEnd: string;
  /** Units since the epoch, by which neighbours differ by one: fits int4. */
  readonly number: number;
}
