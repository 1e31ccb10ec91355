import type { Database } from '../warehouse/database.js';

/** What the tables hold after the demo. Money as the server writes it, so that no cent is lost. */
export interface DemoReport {
  readonly months: readonly { readonly month: string; readonly orders: number; readonly revenue: string }[];
  readonly totals: {
    readonly partitions: number;
    readonly orders: number;
    readonly units: number;
    readonly revenue: string;
  };
  readonly firstDay: { readonly date: string; readonly orders: number; readonly revenue: string };
  /** Dates whose figures differ from a fresh count of their purchases. */
  readonly differing: number;
  readonly ledger: {
    /** Partitions by state; `failed` and `filled`. */
    readonly filled: number;
    readonly failed: number;
    /** Committed fills, over all runs. */
    readonly fills: number;
    /** Partitions whose rows the ledger counts otherwise than the table. */
    readonly differing: number;
  };
}

/** Reads the report. Writes nothing. */
export async function readReport(database: Database): Promise<DemoReport> {
  const months = await database.query<{ month: string; orders: number; revenue: string }>(`
    SELECT to_char(sale_date, 'YYYY-MM') AS month, sum(orders)::float8 AS orders, sum(revenue)::text AS revenue
    FROM sales_summary GROUP BY 1 ORDER BY 1`);
  const [totals] = await database.query<DemoReport['totals']>(`
    SELECT count(*)::float8 AS partitions, coalesce(sum(orders), 0)::float8 AS orders,
           coalesce(sum(units), 0)::float8 AS units, coalesce(sum(revenue), 0)::text AS revenue
    FROM sales_summary`);
  const [firstDay] = await database.query<DemoReport['firstDay']>(`
    SELECT sale_date::text AS date, orders::float8 AS orders, revenue::text AS revenue
    FROM sales_summary ORDER BY sale_date LIMIT 1`);
  const [{ differing } = { differing: 0 }] = await database.query<{ differing: number }>(`
    SELECT count(*)::float8 AS differing
    FROM (SELECT sold_on, count(*) AS orders, sum(quantity) AS units, sum(amount) AS revenue FROM sales GROUP BY 1) AS fresh
    FULL JOIN sales_summary AS held ON held.sale_date = fresh.sold_on
    WHERE (held.orders, held.units, held.revenue) IS DISTINCT FROM (fresh.orders, fresh.units, fresh.revenue)`);
  const [ledger] = await database.query<DemoReport['ledger']>(`
    SELECT count(*) FILTER (WHERE p.outcome = 'filled')::float8 AS filled,
           count(*) FILTER (WHERE p.outcome = 'failed')::float8 AS failed,
           (SELECT count(*) FROM repave.fill WHERE pipeline = 'sales_summary')::float8 AS fills,
           count(*) FILTER (WHERE p.rows IS DISTINCT FROM (SELECT count(*) FROM sales_summary s WHERE s.sale_date = p.key::date))::float8 AS differing
    FROM repave.partition p WHERE p.pipeline = 'sales_summary'`);
  return {
    months,
    totals: totals ?? { partitions: 0, orders: 0, units: 0, revenue: '0' },
    firstDay: firstDay ?? { date: '', orders: 0, revenue: '0' },
    differing,
    ledger: ledger ?? { filled: 0, failed: 0, fills: 0, differing: 0 },
  };
}
