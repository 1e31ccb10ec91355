import assert from 'node:assert/strict';
import { GRANULARITIES, type Granularity } from '../../src/calendar/calendar.js';
import { keyAt, nextKey, previousKey } from '../../src/calendar/range.js';
import { windowOf } from '../../src/calendar/window.js';
import { wallTime } from '../../src/calendar/zone.js';
import { bounds, PARTITION_TYPES, type PartitionType } from '../../src/warehouse/partition-type.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { randomFrom, seed } from '../support/seed.js';
import { withClient } from '../support/template.js';
import { someZones } from '../support/zones.js';

const RANDOM_ZONES = 15;
const INSTANTS = 60;
/** From here to there the zone data of all ages say the same. */
const [FROM, TO] = [Date.UTC(1971, 0, 1), Date.UTC(2024, 0, 1)];

/** What a value of each type is at an instant, as PostgreSQL reads the clock of the zone $4. */
const VALUE: Readonly<Record<PartitionType, string>> = {
  date: '(at AT TIME ZONE $4)::date',
  timestamp: 'at AT TIME ZONE $4',
  timestamptz: 'at',
};

interface Candidate {
  readonly instant: string;
  /** The window before, the instant's own and the one after. */
  readonly windows: readonly (readonly [lower: string, upper: string])[];
  /** Which of them is the value's own by the date that the clock shows. */
  readonly own: number;
  /** Which of them hold the value by this process's own zone data. */
  readonly held: readonly boolean[];
}

describe('a value of the partition column, asked of PostgreSQL', () => {
  const SEED = seed();
  const random = randomFrom(SEED);
  const zones = someZones(RANDOM_ZONES, SEED);
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase({ ledger: false });
  });
  after(() => test.drop());

  for (const type of PARTITION_TYPES) {
    for (const by of GRANULARITIES) {
      // An hour is no date, and a wall time only where no clock goes back.
      if (by === 'hour' && type !== 'timestamptz') continue;
      it(`of type ${type} lies in exactly one window by ${by}, in each zone`, async () => {
        await withClient(test.superuserUrl, async (client) => {
          for (const zone of zones) {
            // Another zone than the pipeline's, as a role may have it: the bounds must not hang on it.
            await client.query(`SET TimeZone = 'Asia/Tokyo'`);
            const candidates = Array.from({ length: INSTANTS }, () => candidate(type, by, zone));
            const { rows } = await client.query<{ instant: string; held: boolean[] }>(
              `SELECT instant, ARRAY(SELECT v.value >= lower::${type} AND v.value < upper::${type}
                                       FROM generate_subscripts($2::text[], 2) place,
                                            LATERAL (SELECT ($2::text[])[nth][place] AS lower, ($3::text[])[nth][place] AS upper) w
                                      ORDER BY place) AS held
                 FROM unnest($1::text[]) WITH ORDINALITY AS given(instant, nth), LATERAL (SELECT instant::timestamptz AS at) i,
                      LATERAL (SELECT ${VALUE[type]} AS value) v
                WHERE $4::text IS NOT NULL`,
              [
                candidates.map(({ instant }) => instant),
                candidates.map(({ windows }) => windows.map(([lower]) => lower)),
                candidates.map(({ windows }) => windows.map(([, upper]) => upper)),
                zone,
              ],
            );
            assert.equal(rows.length, INSTANTS);
            for (const [i, { instant, held }] of rows.entries()) {
              assert.equal(held.length, 3);
              assert.equal(held.filter(Boolean).length, 1, `${instant} by ${by} in ${zone} as ${type}: ${held.join()}`);
              // Its own: the one before only where the clock shows yesterday once more, gone back over midnight.
              assert.ok(held[candidates[i]?.own ?? -1], `${instant} by ${by} in ${zone} as ${type}: ${held.join()}`);
              // So here and there read the zone's clock alike.
              assert.deepEqual(held, candidates[i]?.held, `${instant} by ${by} in ${zone} as ${type}`);
            }
          }
        });
      });
    }
  }

  it('hours of a wall time do not overlap where the zone’s clock is not changed', async () => {
    await withClient(test.superuserUrl, async (client) => {
      for (const zone of ['UTC', 'Asia/Kolkata', 'Asia/Kathmandu', 'America/Phoenix', 'Etc/GMT+5']) {
        const hours = Array.from({ length: INSTANTS }, () =>
          candidate('timestamp', 'hour', zone, Date.UTC(1990, 0, 1)),
        );
        const { rows } = await client.query<{ wrong: number }>(
          `SELECT count(*)::int AS wrong FROM unnest($1::text[], $2::text[], $3::text[]) AS given(instant, lower, upper)
            WHERE NOT (instant::timestamptz AT TIME ZONE $4 >= lower::timestamp AND instant::timestamptz AT TIME ZONE $4 < upper::timestamp)
               OR upper::timestamp - lower::timestamp <> interval '1 hour'`,
          [
            hours.map(({ instant }) => instant),
            hours.map(({ windows }) => windows[1]?.[0]),
            hours.map(({ windows }) => windows[1]?.[1]),
            zone,
          ],
        );
        assert.deepEqual(rows, [{ wrong: 0 }], zone);
      }
    });
  });

  function candidate(type: PartitionType, by: Granularity, zone: string, from = FROM): Candidate {
    const grid = { by, zone };
    const instant = new Date(near(grid, from)).toISOString();
    const key = keyAt(grid, instant);
    const keys = [previousKey(grid, key), key, nextKey(grid, key)];
    const windows = keys.map((each) => bounds(windowOf(grid, each), type));
    const wall = new Date(wallTime(zone, Date.parse(instant))).toISOString().slice(0, -1);
    const value = { date: wall.slice(0, 10), timestamp: wall, timestamptz: bare(instant) }[type];
    const own = type !== 'timestamptz' && wall.slice(0, 10) < windowOf(grid, key).date ? 0 : 1;
    return {
      instant,
      windows,
      own,
      held: windows.map(([lower, upper]) => bare(lower) <= value && value < bare(upper)),
    };
  }

  /** Half of them the very instants at which windows meet, or a millisecond beside. */
  function near(grid: { by: Granularity; zone: string }, from: number): number {
    const any = Math.floor(from + random() * (TO - from));
    if (random() < 0.5) return any;
    const start = Date.parse(windowOf(grid, keyAt(grid, new Date(any).toISOString())).start);
    return start + Math.floor(random() * 3) - 1;
  }
});

/** Without its Z, ISO texts of any precision compare as their times do. */
function bare(instant: string): string {
  return instant.replace('Z', '');
}
