import { definePipeline, SourceError } from 'repave';

/** What the server answers for one date. */
interface DailyRates {
  readonly date: string;
  readonly base: string;
  readonly rates: Readonly<Record<string, unknown>>;
}

/** A number of JSON text, as written there. */
const NUMBER = /"(?:[^"\\]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

export default definePipeline({
  target: 'exchange_rates',
  partition: { column: 'day', by: 'day' },
  start: '1999-01-04',
  columns: ['day', 'currency', 'rate'],
  checks: [{ unique: ['day', 'currency'] }, { not_null: ['currency', 'rate'] }],

  async *rows({ window, signal }) {
    const server = process.env.EXCHANGE_RATES_URL;
    if (!server)
      throw new SourceError('EXCHANGE_RATES_URL is not set: expected the base URL of a server of daily euro rates');
    const answer = await fetch(`${server.replace(/\/$/, '')}/${window.date}`, { signal });
    if (!answer.ok) throw new SourceError(`The server of exchange rates answered ${answer.status} for ${window.date}`);
    const { date, base, rates } = parseExact(await answer.text());
    if (date !== window.date || base !== 'EUR') {
      throw new SourceError(
        `The server of exchange rates answered for another date or base than EUR on ${window.date}`,
      );
    }
    for (const [currency, rate] of Object.entries(rates)) yield { day: window.date, currency, rate };
  },
});

/** Reads JSON with each number as its text: a binary floating-point number would not hold every decimal rate exactly. */
function parseExact(json: string): DailyRates {
  return JSON.parse(json.replace(NUMBER, (token) => (token.startsWith('"') ? token : `"${token}"`))) as DailyRates;
}
