import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { definePipeline, SourceError } from 'repave';

export default definePipeline({
  target: 'deliveries',
  partition: { column: 'day', by: 'day' },
  start: '2024-01-01',
  checks: [{ not_null: ['parcel'] }],

  async *rows({ window, signal }) {
    const folder = process.env.DELIVERIES_FOLDER;
    if (!folder) throw new SourceError('DELIVERIES_FOLDER is not set: expected the folder of the files of deliveries');
    const name = `deliveries-${window.date}.csv`;
    const records = pipeline(
      createReadStream(join(folder, name), { signal }),
      parse({
        bom: true,
        // The first line names the columns: in any order, but all of them columns of the table.
        columns: true,
        // Nothing between two commas is NULL, a pair of quotes an empty text.
        cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
      }),
      // What fails here is thrown by the loop below.
      () => undefined,
    );
    try {
      for await (const record of records as AsyncIterable<Record<string, string | null>>) {
        yield { day: window.date, ...record };
      }
    } catch (error) {
      throw error instanceof Error ? explained(error, name, window.date) : error;
    }
  },
});

/** Says which file, and where in it. Never a value: what an error of the parser quotes may be one. */
function explained(error: Error, name: string, date: string): Error {
  if (error instanceof CsvError)
    return new SourceError(`${name} is no CSV in line ${String(error.lines)}: ${error.code}`);
  if ('code' in error && error.code === 'ENOENT')
    return new SourceError(`There is no file of deliveries for ${date}: ${name}`);
  return error;
}
