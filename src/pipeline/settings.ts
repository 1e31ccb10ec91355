import { z } from 'zod';
import { GRANULARITIES, type Granularity } from '../calendar/calendar.js';
import { KeyError } from '../calendar/key-error.js';
import { windowOf } from '../calendar/window.js';
import { isZone } from '../calendar/zone.js';
import { DEFAULTS, MAX_BATCH, MAX_CONCURRENCY } from '../contract.js';
import { byColumn, checkSetting, columnName, columnNames, queryText, scalar } from './check-settings.js';
import { DURATION_FORM, durationMs } from './duration.js';
import { nearZone } from './near-zone.js';
import type { PipelineSettings } from './pipeline.js';
import { schedule, scheduleSetting, zoneFault } from './schedule-setting.js';
import type { WrittenCheck, WrittenReady } from './written-query.js';
import { PIPELINE_NAME } from './pipeline-name.js';
import {
  exactObject,
  oneOf,
  type ShapeProblem,
  type Shaped,
  shaped,
  textThat,
  trueOrFalse,
  wholeNumber,
} from './shape.js';
import { parseTableName } from './table-name.js';

const duration = textThat(DURATION_FORM, (text) => durationMs(text) !== undefined);

const zoneName = z.custom<string>((value) => typeof value === 'string' && isZone(value), {
  error: ({ input }) => `an IANA time zone such as UTC or America/New_York${nearZone(input)}`,
});

/** What both kinds of pipeline may set. */
const common = {
  target: textThat('a table such as sales_summary or mart.sales_summary', (text) => parseTableName(text) !== undefined),
  partition: exactObject('setting', 'a column and a unit such as { column: sale_date, by: day }', {
    column: columnName,
    by: oneOf(GRANULARITIES),
    zone: zoneName.optional(),
  }),
  start: textThat('the key of the first partition', () => true).optional(),
  checks: z
    .custom<readonly unknown[]>((value) => Array.isArray(value), 'a list such as [{ rows: { min: 1 } }]')
    .pipe(z.array(checkSetting))
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
  scope: byColumn('values by column such as { tenant: acme }', scalar).optional(),
  skipUnchanged: trueOrFalse().optional(),
  create: trueOrFalse().optional(),
  batch: wholeNumber(1, MAX_BATCH).optional(),
  formerly: textThat('the name that the pipeline had, such as sales_daily', (text) =>
    PIPELINE_NAME.test(text),
  ).optional(),
  schedule: scheduleSetting.optional(),
  after: z
    .custom<readonly unknown[]>(
      (value) => Array.isArray(value) && value.length > 0,
      'a list of pipelines such as [daily_sales]',
    )
    .pipe(z.array(textThat("a pipeline's name such as daily_sales", (text) => PIPELINE_NAME.test(text))))
    .refine((names) => new Set(names).size === names.length, 'each pipeline once')
    .optional(),
  checksum: trueOrFalse().optional(),
};

const readyQuery = z.union(
  [queryText, exactObject('setting', 'a query', { sql: queryText, retryAfter: duration.optional() })],
  'a query of one boolean, or { sql: …, retryAfter: 5m }',
);

const changedQuery = textThat(
  '`rows`, or a query of one value such as "SELECT max(updated_at) FROM sales WHERE sold_on = :date"',
  (text) => text.trim() !== '',
);

const sqlOnly = {
  source: textThat('the name of an environment variable such as SOURCE_URL', (text) =>
    /^[A-Za-z_]\w*$/.test(text),
  ).optional(),
  ready: readyQuery.optional(),
  changed: changedQuery.optional(),
};

/** The settings of a SQL file's header. */
export const SETTING_NAMES: readonly string[] = Object.keys({ ...common, ...sqlOnly });

const typescriptOnly = {
  columns: columnNames.optional(),
  stage: trueOrFalse().optional(),
  rows: z.custom<(context: never) => unknown>((value) => typeof value === 'function', 'a function that gives rows'),
};

/** The settings that no SQL file's header has. */
export const TYPESCRIPT_ONLY: readonly string[] = Object.keys(typescriptOnly);

const sqlSettings = exactObject('setting', 'settings, each on a line of its own', { ...common, ...sqlOnly });
const typescriptSettings = exactObject('setting', 'an object of settings', {
  ...common,
  ...typescriptOnly,
  ready: z
    .custom<(context: never) => unknown>((value) => typeof value === 'function', 'a function that says whether')
    .optional(),
  changed: z
    .custom<(context: never) => unknown>(
      (value) => typeof value === 'function',
      "a function that gives the source's version",
    )
    .optional(),
});

/** A pipeline's settings with their defaults, still without name, file and fingerprint, their queries as written. */
export type ReadSettings = Omit<PipelineSettings, 'name' | 'file' | 'fingerprint' | 'checks'> & {
  readonly checks: readonly WrittenCheck[];
};

/** What only a SQL file's header has. */
export interface ReadSqlSettings extends ReadSettings {
  readonly source?: string;
  readonly ready?: WrittenReady;
  /** `rows`, or a query, as written. */
  readonly changed?: string;
}

/** What only `definePipeline` takes. */
export interface ReadTypescriptSettings extends ReadSettings {
  readonly columns?: readonly string[];
  readonly stage?: boolean;
}

/** The settings that were read, and what is wrong. */
export interface SettingsResult<Settings> {
  /** Without what is wrong, as if it had not been given; absent where a setting that must be there is wrong. */
  readonly settings?: Settings;
  readonly problems: readonly ShapeProblem[];
}

/** Reads the settings of a SQL file's header. */
export function readSqlSettings(given: unknown): SettingsResult<ReadSqlSettings> {
  const read = shaped(sqlSettings, given);
  return withDefaults(given, read, ({ source, ready, changed }) =>
    present({ source, ready: ready === undefined ? undefined : writtenReady(ready), changed }),
  );
}

/** Reads what a TypeScript file hands to `definePipeline`. */
export function readTypescriptSettings(given: unknown): SettingsResult<ReadTypescriptSettings> {
  const read = shaped(typescriptSettings, given);
  return withDefaults(given, read, ({ columns, stage }) => ({ columns, ...present({ stage }) }));
}

function writtenReady(given: z.infer<typeof readyQuery>): WrittenReady {
  return typeof given === 'string'
    ? { sql: given, path: ['ready'], retryAfterMs: DEFAULTS.readyRetryMs }
    : { sql: given.sql, path: ['ready', 'sql'], retryAfterMs: millis(given.retryAfter, DEFAULTS.readyRetryMs) };
}

/** Only what was given, so that a pipeline says nothing of what it does not use. */
function present<Given extends object>(given: Given): Partial<Given> {
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Partial<Given>;
}

function withDefaults<Given extends z.infer<z.ZodObject<typeof common>>, Own extends object>(
  written: unknown,
  { data: given, problems, without }: Shaped<Given>,
  own: (given: Given) => Own,
): SettingsResult<ReadSettings & Own> {
  if (!given) return { problems };
  const { column, by, zone = 'UTC' } = given.partition;
  const wrongStart = given.start === undefined ? undefined : startProblem({ by, zone }, given.start);
  const wrongScope = given.scope && Object.hasOwn(given.scope, column) ? scopeProblem(column) : undefined;
  const planned = given.schedule === undefined ? undefined : schedule(given.schedule, zone);
  const wrongZone = planned && zoneFault(planned);
  const attempts = given.retry?.attempts ?? DEFAULTS.retryAttempts;
  const settings: ReadSettings & Own = {
    target: parseTableName(given.target) ?? { table: given.target },
    partition: { column, by, zone },
    start: wrongStart ? undefined : given.start,
    checks: writtenChecks(written, without, given.checks),
    concurrency: given.concurrency,
    retry: { attempts, giveUpAfterMs: millis(given.retry?.giveUpAfter, DEFAULTS.giveUpAfterMs) },
    timeoutMs: millis(given.timeout, DEFAULTS.timeoutMs),
    lookback: given.lookback ?? 0,
    version: given.version === undefined ? undefined : String(given.version),
    allowEmpty: given.allowEmpty ?? true,
    database: given.database ?? 'DATABASE_URL',
    ...present({
      scope: given.scope && !wrongScope ? mapValues(given.scope) : undefined,
      skipUnchanged: given.skipUnchanged,
      create: given.create,
      batch: given.batch,
      formerly: given.formerly,
      schedule: planned,
      after: given.after,
      checksum: given.checksum,
    }),
    ...own(given),
  };
  const zoneProblem = wrongZone === undefined ? undefined : { path: ['schedule'], message: wrongZone };
  return {
    settings,
    problems: [...problems, wrongStart, wrongScope, zoneProblem].filter((problem) => problem !== undefined),
  };
}

function scopeProblem(column: string): ShapeProblem {
  const message =
    `scope names ${column}, the partition column, by whose windows the table is cut already: ` +
    'expected another column, such as { tenant: acme }.';
  return { path: ['scope', column], message };
}

function startProblem(grid: { by: Granularity; zone: string }, start: string): ShapeProblem | undefined {
  try {
    windowOf(grid, start);
    return undefined;
  } catch (error) {
    if (!(error instanceof KeyError)) throw error;
    const message = `start is ${error.given}, which ${error.problem}: expected ${error.expected}.`;
    return { path: ['start'], message };
  }
}

/** The checks, each with the place of its entry in the list as written, in which faulty ones still stand. */
function writtenChecks(
  written: unknown,
  without: readonly (readonly PropertyKey[])[],
  checks: readonly (readonly WrittenCheck[])[] = [],
): WrittenCheck[] {
  const entries = (written as { readonly checks?: readonly unknown[] }).checks?.length ?? 0;
  const faulty = new Set(without.filter(([name]) => name === 'checks').map(([, place]) => Number(place)));
  const places = Array.from({ length: entries }, (_, place) => place).filter((place) => !faulty.has(place));
  return checks.flatMap((entry, i) => entry.map((check) => ({ ...check, path: ['checks', places[i] ?? i] })));
}

function mapValues(given: Readonly<Record<string, string | number | boolean>>): Record<string, string> {
  return Object.fromEntries(Object.entries(given).map(([column, value]) => [column, String(value)]));
}

function millis(text: string | undefined, fallback: number): number {
  return (text === undefined ? undefined : durationMs(text)) ?? fallback;
}
