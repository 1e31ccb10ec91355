import { randomBytes } from 'node:crypto';
import assert from 'node:assert/strict';
import type { BackfillHandle } from '../../src/client.js';
import { Installation } from '../chaos/installation.js';

/** First and last day of the source: two months, of the first of which the pipelines begin late. */
export const [FIRST, LAST] = ['2024-01-30', '2024-02-29'];
/** Partitions of each pipeline of the diamond between them. */
export const PARTITIONS = { days: 31, by_day: 31, by_month: 2, report: 2 } as const;
export type Part = keyof typeof PARTITIONS;

const TABLES = `
  CREATE TABLE sales (sold_on date NOT NULL, units int NOT NULL);
  INSERT INTO sales SELECT d::date, extract(day FROM d) FROM generate_series(date '${FIRST}', date '${LAST}', interval '1 day') d;
  CREATE TABLE days (day date PRIMARY KEY, units bigint);
  CREATE TABLE by_day (day date PRIMARY KEY, doubled bigint);
  CREATE TABLE by_month (month date PRIMARY KEY, units bigint);
  CREATE TABLE report (month date PRIMARY KEY, units bigint, doubled bigint);
  CREATE TABLE alone (day date PRIMARY KEY, units bigint);`;

/** What the report is to hold, straight from the source. */
export const REPORT = `SELECT date_trunc('month', sold_on)::date::text AS month, sum(units)::int AS units, 2 * sum(units)::int AS doubled
  FROM sales GROUP BY 1 ORDER BY 1`;

/**
 * Four pipelines over days and months, of which two depend on the first and the last on both, in an installation of its own, each
 * of whose fills may be held by its pipeline and key.
 */
export class Diamond {
  readonly #suffix = randomBytes(5).toString('hex');

  private constructor(
    readonly installation: Installation,
    suffix: string,
  ) {
    this.#suffix = suffix;
  }

  /** `more`: further files, by the names they have behind the diamond's own. */
  static async open(
    more: (name: (part: string) => string) => Readonly<Record<string, string>> = () => ({}),
  ): Promise<Diamond> {
    const suffix = randomBytes(5).toString('hex');
    const name = (part: string): string => `${part}_${suffix}`;
    const file = (part: string, column: string, by: string, after: string[], query: string): [string, string] => [
      `${name(part)}.sql`,
      `-- repave\n-- target: ${part}\n-- partition: { column: ${column}, by: ${by} }\n-- start: ${by === 'day' ? FIRST : FIRST.slice(0, 7)}\n` +
        (after.length > 0 ? `-- after: [${after.map(name).join(', ')}]\n` : '') +
        query,
    ];
    const held = (part: string): string => `CROSS JOIN held('${name(part)}/' || :key)`;
    const pipelines = Object.fromEntries([
      file(
        'days',
        'day',
        'day',
        [],
        `SELECT sold_on AS day, units FROM sales ${held('days')} WHERE sold_on >= :date AND sold_on < :end_date`,
      ),
      file(
        'by_day',
        'day',
        'day',
        ['days'],
        `SELECT day, 2 * units AS doubled FROM days ${held('by_day')} WHERE day >= :date AND day < :end_date`,
      ),
      file(
        'by_month',
        'month',
        'month',
        ['days'],
        `SELECT :date AS month, sum(units) AS units FROM days ${held('by_month')} WHERE day >= :date AND day < :end_date`,
      ),
      file(
        'report',
        'month',
        'month',
        ['by_day', 'by_month'],
        `SELECT m.month, m.units, (SELECT sum(doubled) FROM by_day WHERE day >= :date AND day < :end_date) AS doubled FROM by_month m ${held('report')} WHERE m.month = :date`,
      ),
    ]);
    const installation = await Installation.open({ pipelines: { ...pipelines, ...more(name) }, tables: TABLES });
    return new Diamond(installation, suffix);
  }

  /** A pipeline's name, which no other test has. */
  name(part: string): string {
    return `${part}_${this.#suffix}`;
  }

  hold(part: Part, key: string): Promise<void> {
    return this.installation.hold(`${this.name(part)}/${key}`);
  }

  release(part: Part, key: string): Promise<void> {
    return this.installation.release(`${this.name(part)}/${key}`);
  }

  /** Starts a backfill under an id of its own. */
  backfill(part: string, input: object): Promise<BackfillHandle> {
    const pipeline = this.name(part);
    return this.installation.client.backfill(
      { pipeline, ...input },
      { id: `backfill/${pipeline}/${randomBytes(3).toString('hex')}` },
    );
  }

  /** Asserts that the report holds what the source says, and that each partition was filled after all that it comes after. */
  async isRight(): Promise<void> {
    const { database } = this.installation;
    const held = await database.sql(`SELECT month::text, units::int, doubled::int FROM report ORDER BY 1`);
    assert.deepEqual(held, await database.sql(REPORT));
    const late = await database.sql(
      `SELECT u.pipeline, u.key, d.pipeline AS before, d.key AS behind FROM repave.pipeline p
         JOIN repave.partition d ON d.pipeline = p.name
         JOIN repave.partition u ON u.pipeline = ANY (p.after)
          AND (u.key LIKE d.key || '%' OR d.key LIKE u.key || '%') AND u.fill >= d.fill`,
    );
    assert.deepEqual(late, [], 'filled before what they come after');
  }

  /** Committed fills by pipeline. */
  async fills(): Promise<Record<string, number>> {
    const rows = await this.installation.database.sql<{ pipeline: string; n: number }>(
      'SELECT pipeline, count(*)::int AS n FROM repave.fill GROUP BY 1',
    );
    return Object.fromEntries(rows.map(({ pipeline, n }) => [pipeline.replace(`_${this.#suffix}`, ''), n]));
  }
}
