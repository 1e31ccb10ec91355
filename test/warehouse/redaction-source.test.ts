import { fill } from '../../src/warehouse/fill.js';
import type { Row } from '../../src/pipeline/pipeline.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, typescriptPipeline, withWorker } from '../support/fill.js';
import { assertRedacted, COLUMNS, failsRedacted, MARKER, NUMBER, ROW } from '../support/redaction.js';

describe('a value of a row is in no failure of a TypeScript source:', () => {
  let test: TestDatabase;

  before(async () => {
    test = await createTestDatabase();
  });
  after(async () => {
    await test.drop();
  });
  beforeEach(async () => {
    await emptyDatabase(test);
    await test.sql(`CREATE TABLE target (${COLUMNS})`);
  });

  class MarkerError extends Error {
    override name = 'HttpError';
    readonly row = ROW;
  }
  const THROWN: Readonly<Record<string, () => unknown>> = {
    'an Error whose message and cause hold it': () => new Error(MARKER, { cause: new Error(MARKER) }),
    'an Error of another class, with the row beside it': () => new MarkerError(MARKER),
    'an Error that has it for a code': () => Object.assign(new Error('x'), { code: `${MARKER}` }),
    'an Error that has it for a name': () => Object.assign(new Error('x'), { name: MARKER }),
    'an AggregateError': () => new AggregateError([new Error(MARKER)], MARKER),
    'a string': () => MARKER,
    'the row itself': () => ROW,
    'a DOMException': () => new DOMException(MARKER, 'DataError'),
  };
  for (const [what, make] of Object.entries(THROWN)) {
    for (const when of ['at once', 'after a row'] as const) {
      it(`${what}, thrown ${when}`, async () => {
        await withWorker(test, async (database) => {
          const pipeline = typescriptPipeline(() => {
            if (when === 'at once') throw make();
            return (function* () {
              yield ROW;
              throw make();
            })();
          });
          const failure = await failsAs(fill(database, fillRequest(pipeline)), 'SourceFailed');
          assertRedacted(failure);
        });
      });
    }
  }

  it('a value that cannot be written', async () => {
    await test.sql('ALTER TABLE target ADD COLUMN bytes bytea, ADD COLUMN list int[]');
    const values: readonly (readonly [Row, RegExp])[] = [
      [{ secret: `${MARKER}\0` }, /Row 1, column "secret" \(text\): .*U\+0000/],
      [{ secret: `${MARKER}\ud800` }, /Row 1, column "secret" \(text\): .*surrogate/],
      [{ secret: { MARKER } }, /Row 1, column "secret" \(text\): an object/],
      [{ secret: Symbol(MARKER) }, /Row 1, column "secret" \(text\): a symbol/],
      [{ number: NUMBER + 0.5 }, /Row 1, column "number" \(bigint\): .*whole number/],
      [{ number: [NUMBER] }, /Row 1, column "number" \(bigint\): an array/],
      [{ born: new Date(MARKER) }, /Row 1, column "born" \(date\): the Date is invalid/],
      [{ born: new Date('1977-07-03') }, /Row 1, column "born" \(date\): a Date is an instant/],
      [{ number: Buffer.from(MARKER) }, /Row 1, column "number" \(bigint\): bytes/],
      [{ list: [{ MARKER }] }, /Row 1, column "list" \(integer\[\]\): an object/],
    ];
    for (const [row, message] of values) {
      await failsRedacted(test, 'DataError', message, { select: null, rows: [{ ...ROW, ...row }] });
    }
  });

  it('a row with other keys, or that is none', async () => {
    await failsRedacted(test, 'SchemaMismatch', /Row 2 .*"more"/, {
      select: null,
      rows: [ROW, { ...ROW, more: MARKER }],
    });
    await failsRedacted(test, 'DataError', /a string/, { select: null, rows: [ROW, MARKER as unknown as Row] });
  });
});
