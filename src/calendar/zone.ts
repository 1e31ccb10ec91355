import { Temporal } from 'temporal-polyfill';

const DAY_MS = 86_400_000;

/** What is known of one time zone, read once from the process's zone data. */
interface ZoneFacts {
  /** Days since the epoch that the zone's clocks skipped as a whole, in order. */
  readonly absent: readonly number[];
  /** Milliseconds since the epoch of the last change of the zone's offset from UTC before 2100. */
  readonly lastChange: number | undefined;
}

const known = new Map<string, ZoneFacts>();

/**
 * Whether a name is an IANA time zone this process has data for, such as `UTC` or `America/New_York`. Offsets such as
 * `+02:00` are none: PostgreSQL reads their sign the other way round.
 */
export function isZone(zone: string): boolean {
  return spelledZone(zone) !== undefined;
}

/** A zone's name with the capitals that IANA gives it, `Europe/Vienna` of `europe/vienna`; undefined for what {@link isZone} refuses. */
export function spelledZone(zone: string): string | undefined {
  if (!/^[A-Za-z]/.test(zone)) return undefined;
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone).timeZoneId;
  } catch {
    return undefined;
  }
}

/**
 * Milliseconds since the epoch at which the zone's clock was or will be changed for the last time before 2100, so that a wall
 * time up to there may come twice or never. Undefined for `UTC`, whose clock never is; a yearly change has no last one
 * before 2099.
 */
export function lastClockChange(zone: string): number | undefined {
  return factsOf(zone).lastChange;
}

/** Milliseconds since the epoch at which the zone's clock is changed, after `from` and before `to`, in order. */
export function clockChangesBetween(zone: string, from: number, to: number): number[] {
  const changes: number[] = [];
  let at = Temporal.Instant.fromEpochMilliseconds(from).toZonedDateTimeISO(zone);
  for (;;) {
    const next = at.getTimeZoneTransition('next');
    if (!next || next.epochMilliseconds >= to) return changes;
    changes.push(next.epochMilliseconds);
    at = next;
  }
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
  let lastChange: number | undefined;
  let before = Temporal.Instant.from('1800-01-01T00:00:00Z').toZonedDateTimeISO(zone);
  // Zones with yearly changes have transitions without end; nobody announces a skipped day a century ahead.
  const end = Date.UTC(2100, 0, 1);
  for (;;) {
    const after = before.getTimeZoneTransition('next');
    if (!after || after.epochMilliseconds >= end) return { absent, lastChange };
    lastChange = after.epochMilliseconds;
    const from = after.epochMilliseconds + before.offsetNanoseconds / 1e6;
    const to = after.epochMilliseconds + after.offsetNanoseconds / 1e6;
    for (let day = Math.ceil(from / DAY_MS); (day + 1) * DAY_MS <= to; day++) absent.push(day);
    before = after;
  }
}
