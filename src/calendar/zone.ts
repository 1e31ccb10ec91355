import { Temporal } from 'temporal-polyfill';

const DAY_MS = 86_400_000;

/** What is known of one time zone, read once from the process's zone data. */
interface ZoneFacts {
  /** Days since the epoch that the zone's clocks skipped as a whole, in order. */
  readonly absent: readonly number[];
  /** Whether the zone's offset from UTC ever changes. */
  readonly changes: boolean;
}

const known = new Map<string, ZoneFacts>();

/**
 * Whether a name is an IANA time zone this process has data for, such as `UTC` or `America/New_York`. Offsets such as
 * `+02:00` are none: PostgreSQL reads their sign the other way round.
 */
export function isZone(zone: string): boolean {
  if (!/^[A-Za-z]/.test(zone)) return false;
  try {
    Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone);
    return true;
  } catch {
    return false;
  }
}

/** Whether the zone's clock is ever changed, so that a wall time may come twice or never. False for `UTC`. */
export function clockChanges(zone: string): boolean {
  return factsOf(zone).changes;
}

/** Days, in days since the epoch and in order, that have no time in the zone: its clocks skipped them. */
export function absentDays(zone: string): readonly number[] {
  return factsOf(zone).absent;
}

/** Milliseconds since the epoch of the first instant whose local date is `day` (in days since the epoch) or later. */
export function startOfDay(zone: string, day: number): number {
  if (isUtc(zone)) return day * DAY_MS;
  const date = new Date(day * DAY_MS);
  return Temporal.PlainDate.from({
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
  }).toZonedDateTime(zone).epochMilliseconds;
}

/** The zone's wall time at an instant, as milliseconds since the epoch of the same reading in UTC. */
export function wallTime(zone: string, epochMs: number): number {
  if (isUtc(zone)) return epochMs;
  const zoned = Temporal.Instant.fromEpochMilliseconds(epochMs).toZonedDateTimeISO(zone);
  return epochMs + zoned.offsetNanoseconds / 1e6;
}

function isUtc(zone: string): boolean {
  return zone === 'UTC';
}

function factsOf(zone: string): ZoneFacts {
  let facts = known.get(zone);
  if (!facts) {
    facts = readFacts(zone);
    known.set(zone, facts);
  }
  return facts;
}

function readFacts(zone: string): ZoneFacts {
  const absent: number[] = [];
  let changes = false;
  let before = Temporal.Instant.from('1800-01-01T00:00:00Z').toZonedDateTimeISO(zone);
  // Zones with yearly changes have transitions without end; nobody announces a skipped day a century ahead.
  const end = Date.UTC(2100, 0, 1);
  for (;;) {
    const after = before.getTimeZoneTransition('next');
    if (!after || after.epochMilliseconds >= end) return { absent, changes };
    changes = true;
    const from = after.epochMilliseconds + before.offsetNanoseconds / 1e6;
    const to = after.epochMilliseconds + after.offsetNanoseconds / 1e6;
    for (let day = Math.ceil(from / DAY_MS); (day + 1) * DAY_MS <= to; day++) absent.push(day);
    before = after;
  }
}
