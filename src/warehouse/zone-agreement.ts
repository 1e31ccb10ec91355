import { clockChangesBetween, wallTime } from '../calendar/zone.js';
import { Failure } from '../failure.js';
import type { Database } from './database.js';

const SECOND_MS = 1000;
const WEEK_MS = 7 * 86_400_000;

/**
 * Where the zone data of this process and of the server differ, in this year and the next: a sentence that says at which
 * instant and by how much, or undefined where they agree. Windows are worked out here and `ts::date` in a query there, so a
 * difference puts rows outside their windows. Compared each week, and a second before and after every change known here.
 *
 * Throws `InvalidPipeline` where the server has no such zone; `DatabaseUnavailable`.
 */
export async function zoneDisagreement(
  database: Database,
  zone: string,
  now: Date = new Date(),
): Promise<string | undefined> {
  if (zone === 'UTC') return undefined;
  const at = instants(zone, now.getUTCFullYear());
  const there = await offsets(database, zone, at);
  const differing = at.findIndex((instant, i) => wallTime(zone, instant) - instant !== there[i]);
  const instant = at[differing];
  if (instant === undefined) return undefined;
  const here = wallTime(zone, instant) - instant;
  return (
    `The zone data of this process (${process.versions.tz}) and of the database server differ for ${zone}: at ${new Date(instant).toISOString()} ` +
    `its clock is ${offset(here)} here and ${offset(there[differing] ?? NaN)} there. Windows would not hold the rows that queries put into them. ` +
    'Update the older one: Node, or the server’s tzdata.'
  );
}

/** Milliseconds since the epoch, in order. */
function instants(zone: string, year: number): number[] {
  const [from, to] = [Date.UTC(year, 0, 1), Date.UTC(year + 2, 0, 1)];
  const found = clockChangesBetween(zone, from, to).flatMap((change) => [change - SECOND_MS, change]);
  for (let week = from; week < to; week += WEEK_MS) found.push(week);
  return found.sort((one, other) => one - other);
}

/** How many milliseconds the zone's clock is ahead of UTC on the server, at each instant. */
async function offsets(database: Database, zone: string, at: readonly number[]): Promise<number[]> {
  try {
    const [row] = await database.query<{ offsets: number[] }>(
      `SELECT pg_catalog.array_agg(pg_catalog.date_part('epoch', (instant AT TIME ZONE $2) - (instant AT TIME ZONE 'UTC')) * 1000
                                   ORDER BY place) AS offsets
         FROM pg_catalog.unnest($1::pg_catalog.float8[]) WITH ORDINALITY AS given(ms, place),
              LATERAL (SELECT pg_catalog.to_timestamp(ms / 1000) AS instant) read`,
      [at, zone],
    );
    return row?.offsets ?? [];
  } catch (error) {
    // invalid_parameter_value: the name of the zone is the only parameter that can be wrong.
    if (!(error instanceof Failure) || error.options.sqlstate !== '22023') throw error;
    throw new Failure(
      'InvalidPipeline',
      `The database server has no time zone ${JSON.stringify(zone)}: its zone data is older than that of this process (${process.versions.tz}), or the name is not one of IANA’s. Update the server’s tzdata, or give a name that both know (see pg_timezone_names).`,
    );
  }
}

function offset(milliseconds: number): string {
  const seconds = Math.abs(milliseconds) / 1000;
  const parts = [
    Math.floor(seconds / 3600),
    Math.floor(seconds / 60) % 60,
    ...(seconds % 60 === 0 ? [] : [seconds % 60]),
  ];
  return `UTC${milliseconds < 0 ? '-' : '+'}${parts.map((part) => String(part).padStart(2, '0')).join(':')}`;
}
