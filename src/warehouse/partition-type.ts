import type { Window } from '../calendar/calendar.js';

/** What a partition column may hold, domains over it included. */
export const PARTITION_TYPES = ['date', 'timestamp', 'timestamptz'] as const;
export type PartitionType = (typeof PARTITION_TYPES)[number];

/** A window's bounds as values of the partition column's own type, half-open. */
export function bounds(window: Window, type: PartitionType): readonly [lower: string, upper: string] {
  switch (type) {
    case 'date':
      return [window.date, window.endDate];
    case 'timestamp':
      return [window.localStart, window.localEnd];
    case 'timestamptz':
      return [window.start, window.end];
    default:
      return type satisfies never;
  }
}
