import assert from 'node:assert/strict';
import type { RowSource } from '../../src/pipeline/pipeline.js';
import { fill } from '../../src/warehouse/fill.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { failsAs, fillRequest, KEY, typescriptPipeline, withWorker } from '../support/fill.js';

const COLUMNS = ['n', 'day', 'constructor'] as const;

describe('the rows of a TypeScript source', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(() => test.drop());
  beforeEach(() =>
    test.sql(`DROP TABLE IF EXISTS target; CREATE TABLE target (day date NOT NULL, n int, constructor text);
              INSERT INTO target VALUES ('${KEY}', -1, 'old')`),
  );

  const filled = (rows: RowSource, settings: { columns?: readonly string[]; stage?: boolean }) =>
    withWorker(test, async (database) => fill(database, fillRequest(typescriptPipeline(rows, settings))));
  const standing = async () =>
    (await test.sql('SELECT day::text, n, constructor FROM target ORDER BY n')).map((row) => Object.values(row));

  for (const stage of [true, false]) {
    describe(stage ? 'through the spool' : 'straight', () => {
      it('may be arrays in the order of `columns`, and objects among them', async () => {
        const day = KEY;
        await filled(
          async function* () {
            yield [1, day, 'array'];
            yield { constructor: 'object', day, n: 2 };
            yield Object.freeze([3, day, undefined]);
            yield { n: 4, day };
            yield Object.assign(Object.create({ inherited: 1, constructor: 'inherited' }) as object, { day, n: 5 });
            yield { n: 6, day, constructor: undefined };
            yield [7, day, null];
          },
          { columns: COLUMNS, stage },
        );
        assert.deepEqual(await standing(), [
          [KEY, 1, 'array'],
          [KEY, 2, 'object'],
          [KEY, 3, null],
          [KEY, 4, null],
          [KEY, 5, null],
          [KEY, 6, null],
          [KEY, 7, null],
        ]);
      });

      it('may leave keys of the first out, which are NULL, and come in any order of keys', async () => {
        await filled(
          ({ key }) => [
            { day: key, n: 1, constructor: 'a' },
            { n: 2, day: key },
            { day: key, n: 3 },
            { constructor: 'd', n: 4, day: key },
          ],
          { stage },
        );
        assert.deepEqual(await standing(), [
          [KEY, 1, 'a'],
          [KEY, 2, null],
          [KEY, 3, null],
          [KEY, 4, 'd'],
        ]);
      });

      const unfit: readonly (readonly [
        what: string,
        row: unknown,
        columns: readonly string[] | undefined,
        message: RegExp,
      ])[] = [
        [
          'an array that is too short',
          [9, KEY],
          COLUMNS,
          /^Row 3 of target is an array of 2 values: expected 3, one for each of n, day, constructor\./,
        ],
        [
          'an array that is too long',
          [9, KEY, 'c', 'd'],
          COLUMNS,
          /^Row 3 of target is an array of 4 values: expected 3/,
        ],
        [
          'an array without `columns`',
          [9, KEY, 'c'],
          undefined,
          /^Row 3 of target is an array, and the pipeline has no `columns`/,
        ],
        [
          'another key than those of `columns`',
          { n: 9, day: KEY, other: 1 },
          COLUMNS,
          /^Row 3 of target has the key "other": the columns written are n, day, constructor/,
        ],
        [
          'another key than the first row’s',
          { n: 9, day: KEY, other: 1 },
          undefined,
          /^Row 3 of target has the key "other"/,
        ],
      ];
      for (const [what, row, columns, message] of unfit) {
        it(`${what} is SchemaMismatch that names the row`, async () => {
          const rows = ({ key }: { readonly key: string }) => [
            { day: key, n: 1, constructor: 'a' },
            { day: key, n: 2, constructor: 'b' },
            row,
          ];
          const failure = await failsAs(filled(rows as RowSource, { columns, stage }), 'SchemaMismatch');
          assert.match(failure.message, message);
          assert.deepEqual(await standing(), [[KEY, -1, 'old']]);
        });
      }

      for (const [row, message] of [
        [null, /^Row 2 of target is null: expected an object/],
        ['text', /^Row 2 of target is a string/],
        [undefined, /^Row 2 of target is undefined/],
      ] as const) {
        it(`${String(row)} is DataError that names the row`, async () => {
          const failure = await failsAs(
            filled((({ key }) => [{ day: key, n: 1 }, row]) as RowSource, { stage }),
            'DataError',
          );
          assert.match(failure.message, message);
        });
      }

      it('columns that the target lacks are refused before anything is asked of the source', async () => {
        const failure = await failsAs(
          filled(() => assert.fail('asked for rows'), { columns: ['day', 'nowhere'], stage }),
          'SchemaMismatch',
        );
        assert.match(failure.message, /column "nowhere" is not in public\.target/);
      });

      it('that are no rows to iterate over say how to write them', async () => {
        for (const rows of [async () => [], () => undefined, () => 5]) {
          const failure = await failsAs(filled(rows as unknown as RowSource, { stage }), 'InvalidPipeline');
          assert.match(failure.message, /async \*rows/);
        }
      });
    });
  }
});
