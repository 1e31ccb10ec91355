import { definePipeline, SourceError } from 'repave';
import { getJson } from '../lib/get-json.js';

/** One page of `GET /orders?from=…&to=…&cursor=…`. */
interface Page {
  readonly orders: readonly {
    readonly id: number;
    readonly placed_at: string;
    readonly customer: string | null;
    /** Decimal text: a JavaScript number would not hold every amount exactly. */
    readonly amount: string;
    readonly lines: readonly unknown[];
  }[];
  /** Where the next page begins; null on the last. */
  readonly next: string | null;
}

export default definePipeline({
  target: 'orders',
  partition: { column: 'placed_at', by: 'day' },
  start: '2024-01-01',
  columns: ['placed_at', 'id', 'customer', 'amount', 'lines'],
  checks: [{ unique: ['id'] }],
  // What the server can take.
  concurrency: 2,

  async *rows({ window, signal }) {
    const server = process.env.SHOP_API_URL;
    if (!server) throw new SourceError('SHOP_API_URL is not set: expected the base URL of the shop’s API');
    for (let cursor: string | null = ''; cursor !== null;) {
      const url = new URL('orders', server.endsWith('/') ? server : `${server}/`);
      url.searchParams.set('from', window.start);
      url.searchParams.set('to', window.end);
      if (cursor) url.searchParams.set('cursor', cursor);
      // A page comes whole or not at all, so one that is asked for again yields no row twice.
      const page = (await getJson(url, signal)) as Page;
      for (const { placed_at, id, customer, amount, lines } of page.orders) {
        yield [placed_at, id, customer, amount, lines];
      }
      cursor = page.next;
    }
  },
});
