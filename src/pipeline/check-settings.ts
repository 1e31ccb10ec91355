import { z } from 'zod';
import { exactObject, oneOf, textThat, wholeNumber } from './shape.js';
import type { WrittenCheck } from './written-query.js';

const MAX_ROWS = Number.MAX_SAFE_INTEGER;

export const columnName = textThat("a column's name", (text) => text.trim() !== '');
export const columnNames = z
  .custom<readonly unknown[]>(
    (value) => Array.isArray(value) && value.length > 0,
    'a list of column names such as [sale_date]',
  )
  .pipe(z.array(columnName))
  .refine((names) => new Set(names).size === names.length, 'each column once');

const rowsCheck = exactObject('setting', 'bounds such as { min: 1 }', {
  min: wholeNumber(0, MAX_ROWS).optional(),
  max: wholeNumber(0, MAX_ROWS).optional(),
})
  .refine(({ min, max }) => min !== undefined || max !== undefined, 'min, max or both')
  .refine(({ min, max }) => min === undefined || max === undefined || min <= max, 'a min that is not above max');

/** A column's value. A number that JavaScript may have rounded is refused: it may be another's. */
export const scalar = z.custom<string | number | boolean>(
  (value) => typeof value === 'string' || typeof value === 'boolean' || (Number.isFinite(value) && !isRounded(value)),
  {
    error: ({ input }) =>
      isRounded(input)
        ? 'a number beyond 9007199254740991, where JavaScript rounds, as a text'
        : 'a text, a number, or true or false',
  },
);

export const queryText = textThat('a query, one SELECT', (text) => text.trim() !== '');

/** An object by column name, of at least one. */
export function byColumn<Value extends z.ZodType>(
  expected: string,
  value: Value,
): z.ZodPipe<
  z.ZodCustom<Record<string, unknown>, Record<string, unknown>>,
  z.ZodRecord<z.ZodCustom<string, string>, Value>
> {
  return z
    .custom<Record<string, unknown>>(
      (given) =>
        typeof given === 'object' &&
        given !== null &&
        !Array.isArray(given) &&
        Object.keys(given).length > 0 &&
        // A column of that name would be passed over.
        !Object.hasOwn(given, '__proto__'),
      expected,
    )
    .pipe(z.record(columnName, value));
}

const rangeBounds = exactObject('setting', 'bounds such as { min: 0, max: 100 }', {
  min: scalar.optional(),
  max: scalar.optional(),
}).refine(({ min, max }) => min !== undefined || max !== undefined, 'min, max or both');

const acceptedValues = z
  .custom<readonly unknown[]>(
    (value) => Array.isArray(value) && value.length > 0,
    'a list of values such as [EUR, USD]',
  )
  .pipe(z.array(scalar));

const CHECKS = {
  rows: rowsCheck.optional(),
  change: exactObject('setting', 'a limit such as { maxPercent: 50 }', {
    maxPercent: z.custom<number>(
      (value) => Number.isFinite(value) && Number(value) >= 0,
      'a finite number of 0 or more',
    ),
  }).optional(),
  unique: columnNames.optional(),
  not_null: columnNames.optional(),
  accepted: byColumn('values by column such as { currency: [EUR, USD] }', acceptedValues).optional(),
  range: byColumn('bounds by column such as { revenue: { min: 0 } }', rangeBounds).optional(),
  sum: byColumn('a query by column such as { revenue: "SELECT sum(amount) FROM sales WHERE …" }', queryText).optional(),
  sql: queryText.optional(),
} as const;
const CHECK_NAMES = Object.keys(CHECKS) as readonly (keyof typeof CHECKS)[];

/** One entry of `checks`, which may say several columns' checks. */
export const checkSetting = exactObject('check', 'a check such as { rows: { min: 1 } }', {
  ...CHECKS,
  severity: oneOf(['fail', 'warn']).optional(),
  name: textThat('a name of the check', (text) => text.trim() !== '').optional(),
})
  .refine(
    (given) => CHECK_NAMES.filter((name) => given[name] !== undefined).length === 1,
    `one check an entry: ${CHECK_NAMES.slice(0, -1).join(', ')} or ${CHECK_NAMES.at(-1)}`,
  )
  .refine(({ name, sql }) => name === undefined || sql !== undefined, 'a name only beside sql')
  .transform((given): WrittenCheck[] => {
    const { rows, change, unique, not_null, accepted, range, sum, sql, name } = given;
    const common = given.severity === undefined ? {} : { severity: given.severity };
    if (rows) return [{ ...common, kind: 'rows', ...rows }];
    if (change) return [{ ...common, kind: 'change', ...change }];
    if (unique) return [{ ...common, kind: 'unique', columns: unique }];
    if (not_null) return [{ ...common, kind: 'not_null', columns: not_null }];
    if (accepted)
      return Object.entries(accepted).map(([column, values]) => ({
        ...common,
        kind: 'accepted',
        column,
        values: values.map(String),
      }));
    if (range)
      return Object.entries(range).map(([column, { min, max }]) => ({
        ...common,
        kind: 'range',
        column,
        ...(min === undefined ? {} : { min: String(min) }),
        ...(max === undefined ? {} : { max: String(max) }),
      }));
    if (sum) return Object.entries(sum).map(([column, equals]) => ({ ...common, kind: 'sum', column, equals }));
    return [{ ...common, kind: 'sql', query: sql ?? '', ...(name === undefined ? {} : { name }) }];
  });

function isRounded(value: unknown): boolean {
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}
