import { GRANULARITIES, type Granularity } from './calendar.js';
import { KeyError } from './key-error.js';

const DAY_MS = 86_400_000;

/** Keys begin with a year in this range, so that every instant of a window is written with four digits for its year. */
export const FIRST_YEAR = 1000;
export const LAST_YEAR = 9998;

/** How each granularity's keys are written, with an example and an article for messages. */
const FORMS = {
  hour: { pattern: /^(\d{4}-\d{2}-\d{2})T([01]\d|2[0-3])Z$/, noun: 'an hour', example: '2024-02-29T13Z' },
  day: { pattern: /^\d{4}-\d{2}-\d{2}$/, noun: 'a day', example: '2024-02-29' },
  week: { pattern: /^(\d{4})-W(\d{2})$/, noun: 'a week', example: '2024-W09' },
  month: { pattern: /^(\d{4})-(0[1-9]|1[0-2])$/, noun: 'a month', example: '2024-02' },
  quarter: { pattern: /^(\d{4})-Q([1-4])$/, noun: 'a quarter', example: '2024-Q1' },
  year: { pattern: /^\d{4}$/, noun: 'a year', example: '2024' },
} as const satisfies Record<Granularity, { pattern: RegExp; noun: string; example: string }>;

/** What a key of this granularity looks like, for messages: `a day such as 2024-02-29`. */
export function keyForm(by: Granularity): string {
  return `${FORMS[by].noun} such as ${FORMS[by].example}`;
}

/**
 * The unit a key names, as a number by which neighbours differ by one: hours, days, weeks (ISO), months, quarters or years
 * since the epoch. Throws {@link KeyError} where the key has another form or names a date that no calendar has.
 */
export function parseKey(by: Granularity, key: string): number {
  const match = FORMS[by].pattern.exec(key);
  if (!match) throw new KeyError(key, otherForm(by, key), keyForm(by));
  const year = Number(key.slice(0, 4));
  if (year < FIRST_YEAR || year > LAST_YEAR) {
    throw new KeyError(key, 'is out of range', `${keyForm(by)}, with a year from ${FIRST_YEAR} to ${LAST_YEAR}`);
  }
  switch (by) {
    case 'hour':
      return dayNumber(by, key, match[1] ?? '') * 24 + Number(match[2]);
    case 'day':
      return dayNumber(by, key, key);
    case 'week':
      return weekNumber(key, year, Number(match[2]));
    case 'month':
      return (year - 1970) * 12 + Number(match[2]) - 1;
    case 'quarter':
      return (year - 1970) * 4 + Number(match[2]) - 1;
    case 'year':
      return year - 1970;
    default:
      return by satisfies never;
  }
}

/** The key of a unit: the inverse of {@link parseKey}. Throws {@link KeyError} outside the years that keys can name. */
export function formatKey(by: Granularity, number: number): string {
  const key = writeKey(by, number);
  const year = Number.parseInt(key, 10);
  if (!(year >= FIRST_YEAR && year <= LAST_YEAR)) {
    throw new KeyError(key, 'is out of range', `${keyForm(by)}, with a year from ${FIRST_YEAR} to ${LAST_YEAR}`);
  }
  return key;
}

/** The unit's first date, in days since the epoch. An hour's is its UTC date. */
export function firstDay(by: Granularity, number: number): number {
  switch (by) {
    case 'hour':
      return Math.floor(number / 24);
    case 'day':
      return number;
    case 'week':
      return number * 7 - 3;
    case 'month':
      return daysOf(1970, number);
    case 'quarter':
      return daysOf(1970, number * 3);
    case 'year':
      return daysOf(1970 + number, 0);
    default:
      return by satisfies never;
  }
}

/** The unit that a date, in days since the epoch, belongs to; for hours that date's first UTC hour. */
export function unitOfDay(by: Granularity, day: number): number {
  const date = new Date(day * DAY_MS);
  const years = date.getUTCFullYear() - 1970;
  switch (by) {
    case 'hour':
      return day * 24;
    case 'day':
      return day;
    case 'week':
      return Math.floor((day + 3) / 7);
    case 'month':
      return years * 12 + date.getUTCMonth();
    case 'quarter':
      return years * 4 + Math.floor(date.getUTCMonth() / 3);
    case 'year':
      return years;
    default:
      return by satisfies never;
  }
}

/** `2024-02-29` for a date in days since the epoch. */
export function formatDate(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

function writeKey(by: Granularity, number: number): string {
  switch (by) {
    case 'hour': {
      const day = Math.floor(number / 24);
      return `${formatDate(day)}T${padded(number - day * 24)}Z`;
    }
    case 'day':
      return formatDate(number);
    case 'week': {
      // The ISO year of a week is the year of its Thursday.
      const thursday = number * 7;
      const year = new Date(thursday * DAY_MS).getUTCFullYear();
      return `${year}-W${padded(Math.floor((thursday - daysOf(year, 0)) / 7) + 1)}`;
    }
    case 'month':
      return formatDate(firstDay(by, number)).slice(0, -3);
    case 'quarter':
      return `${1970 + Math.floor(number / 4)}-Q${(((number % 4) + 4) % 4) + 1}`;
    case 'year':
      return String(1970 + number);
    default:
      return by satisfies never;
  }
}

function padded(value: number): string {
  return String(value).padStart(2, '0');
}

/** Days from the epoch to the first of a month, counted from January of `year`. */
function daysOf(year: number, month: number): number {
  return Date.UTC(year, month, 1) / DAY_MS;
}

function dayNumber(by: Granularity, key: string, date: string): number {
  const days = Date.parse(`${date}T00:00:00Z`) / DAY_MS;
  // Date.parse takes 2023-02-30 for 2023-03-02 in some engines and for NaN in others.
  if (Number.isNaN(days) || formatDate(days) !== date) {
    throw new KeyError(key, `names a date that no calendar has${lastOfMonth(date)}`, keyForm(by));
  }
  return days;
}

function lastOfMonth(date: string): string {
  const month = Number(date.slice(5, 7));
  if (month < 1 || month > 12) return '';
  const last = formatDate(daysOf(Number(date.slice(0, 4)), month) - 1);
  return ` (that month ends on ${last})`;
}

function weekNumber(key: string, year: number, week: number): number {
  // 4 January is always in an ISO year's first week.
  const first = Math.floor((daysOf(year, 0) + 3 + 3) / 7);
  const weeks = Math.floor((daysOf(year + 1, 0) + 3 + 3) / 7) - first;
  if (week < 1 || week > weeks) {
    throw new KeyError(key, `names a week that no calendar has (${year} has ${weeks} weeks)`, keyForm('week'));
  }
  return first + week - 1;
}

function otherForm(by: Granularity, key: string): string {
  if (key === '') return 'is empty';
  const other = GRANULARITIES.find((granularity) => granularity !== by && FORMS[granularity].pattern.test(key));
  return other ? `is ${FORMS[other].noun}` : `is not ${FORMS[by].noun}`;
}
