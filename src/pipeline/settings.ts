import { z } from 'zod';
import { GRANULARITIES } from '../calendar/calendar.js';
import { KeyError } from '../calendar/key-error.js';
import { windowOf } from '../calendar/window.js';
import { isZone } from '../calendar/zone.js';
import { DEFAULTS, MAX_CONCURRENCY } from '../contract.js';
import { DURATION_FORM, durationMs } from './duration.js';
import type { Check, PipelineSettings } from './pipeline.js';
import { exactObject, oneOf, shapeProblems, type ShapeProblem, textThat, trueOrFalse, wholeNumber } from './shape.js';
import { parseTableName } from './table-name.js';

const MAX_ROWS = Number.MAX_SAFE_INTEGER;

const columnName = textThat("a column's name", (text) => text.trim() !== '');
const columnNames = z
  .custom<readonly unknown[]>(
    (value) => Array.isArray(value) && value.length > 0,
    'a list of column names such as [sale_date]',
  )
  .pipe(z.array(columnName))
  .refine((names) => new Set(names).size === names.length, 'each column once');
const duration = textThat(DURATION_FORM, (text) => durationMs(text) !== undefined);

const rowsCheck = exactObject('setting', 'bounds such as { min: 1 }', {
  min: wholeNumber(0, MAX_ROWS).optional(),
  max: wholeNumber(0, MAX_ROWS).optional(),
})
  .refine(({ min, max }) => min !== undefined || max !== undefined, 'min, max or both')
  .refine(({ min, max }) => min === undefined || max === undefined || min <= max, 'a min that is not above max');

const check = exactObject('check', 'a check such as { rows: { min: 1 } }', {
  rows: rowsCheck.optional(),
  unique: columnNames.optional(),
  not_null: columnNames.optional(),
})
  .refine(
    (given) => Object.values(given).filter((value) => value !== undefined).length === 1,
    'one check an entry: rows, unique or not_null',
  )
  .transform(({ rows, unique, not_null }): Check => {
    if (rows) return { kind: 'rows', ...rows };
    return unique ? { kind: 'unique', columns: unique } : { kind: 'not_null', columns: not_null ?? [] };
  });

/** What both kinds of pipeline may set. */
const common = {
  target: textThat('a table such as sales_summary or mart.sales_summary', (text) => parseTableName(text) !== undefined),
  partition: exactObject('setting', 'a column and a unit such as { column: sale_date, by: day }', {
    column: columnName,
    by: oneOf(GRANULARITIES),
    zone: textThat('an IANA time zone such as UTC or America/New_York', isZone).optional(),
  }),
  start: textThat('the key of the first partition', () => true).optional(),
  checks: z
    .custom<readonly unknown[]>((value) => Array.isArray(value), 'a list such as [{ rows: { min: 1 } }]')
    .pipe(z.array(check))
    .optional(),
  concurrency: wholeNumber(1, MAX_CONCURRENCY).optional(),
  retry: exactObject('setting', 'an object such as { attempts: 3, giveUpAfter: 24h }', {
    attempts: wholeNumber(1, 1000).optional(),
    giveUpAfter: duration.optional(),
  }).optional(),
  timeout: duration.optional(),
  lookback: wholeNumber(0, 10_000).optional(),
  version: z
    .custom<string | number>(
      (value) => (typeof value === 'string' && value !== '') || Number.isFinite(value),
      'a text or a number that is changed when all partitions are to be filled anew',
    )
    .optional(),
  allowEmpty: trueOrFalse().optional(),
  database: textThat('the name of an environment variable such as DATABASE_URL', (text) =>
    /^[A-Za-z_]\w*$/.test(text),
  ).optional(),
};

/** The settings of a SQL file's header. */
export const SETTING_NAMES: readonly string[] = Object.keys(common);

const sqlSettings = exactObject('setting', 'settings, each on a line of its own', common);
const typescriptSettings = exactObject('setting', 'an object of settings', {
  ...common,
  columns: columnNames.optional(),
  rows: z.custom<(context: never) => unknown>((value) => typeof value === 'function', 'a function that gives rows'),
});

/** A pipeline's settings with their defaults, still without name, file and fingerprint. */
export type ReadSettings = Omit<PipelineSettings, 'name' | 'file' | 'fingerprint'>;

/** Settings that were read, or what is wrong with them. */
export type SettingsResult<Settings> =
  | { readonly settings: Settings; readonly problems?: undefined }
  | { readonly settings?: undefined; readonly problems: readonly ShapeProblem[] };

/** Reads the settings of a SQL file's header. */
export function readSqlSettings(given: unknown): SettingsResult<ReadSettings> {
  const parsed = sqlSettings.safeParse(given);
  return parsed.success ? withDefaults(parsed.data) : { problems: shapeProblems(parsed.error, given) };
}

/** Reads what a TypeScript file hands to `definePipeline`. */
export function readTypescriptSettings(
  given: unknown,
): SettingsResult<ReadSettings & { readonly columns?: readonly string[] }> {
  const parsed = typescriptSettings.safeParse(given);
  if (!parsed.success) return { problems: shapeProblems(parsed.error, given) };
  const read = withDefaults(parsed.data);
  return read.settings ? { settings: { ...read.settings, columns: parsed.data.columns } } : read;
}

function withDefaults(given: z.infer<typeof sqlSettings>): SettingsResult<ReadSettings> {
  const { column, by, zone = 'UTC' } = given.partition;
  const grid = { by, zone };
  if (given.start !== undefined) {
    try {
      windowOf(grid, given.start);
    } catch (error) {
      if (!(error instanceof KeyError)) throw error;
      return {
        problems: [
          { path: ['start'], message: `start is ${error.given}, which ${error.problem}: expected ${error.expected}.` },
        ],
      };
    }
  }
  const attempts = given.retry?.attempts ?? DEFAULTS.retryAttempts;
  return {
    settings: {
      target: parseTableName(given.target) ?? { table: given.target },
      partition: { column, by, zone },
      start: given.start,
      checks: given.checks ?? [],
      concurrency: given.concurrency,
      retry: { attempts, giveUpAfterMs: millis(given.retry?.giveUpAfter, DEFAULTS.giveUpAfterMs) },
      timeoutMs: millis(given.timeout, DEFAULTS.timeoutMs),
      lookback: given.lookback ?? 0,
      version: given.version === undefined ? undefined : String(given.version),
      allowEmpty: given.allowEmpty ?? true,
      database: given.database ?? 'DATABASE_URL',
    },
  };
}

function millis(text: string | undefined, fallback: number): number {
  return (text === undefined ? undefined : durationMs(text)) ?? fallback;
}
