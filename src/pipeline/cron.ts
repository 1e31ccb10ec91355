/** One field of a cron expression, with the values it may hold. */
interface CronField {
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** Words for the values from `min` on. */
  readonly words: readonly string[];
}

const MONTHS = [
  ...['january', 'february', 'march', 'april', 'may', 'june'],
  ...['july', 'august', 'september', 'october', 'november', 'december'],
];
const DAYS = ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'];
/** The most days that each month can have. */
const LENGTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

const FIELDS = [
  { name: 'minute', min: 0, max: 59, words: [] },
  { name: 'hour', min: 0, max: 23, words: [] },
  { name: 'day of the month', min: 1, max: 31, words: [] },
  { name: 'month', min: 1, max: 12, words: MONTHS },
  { name: 'day of the week', min: 0, max: 7, words: DAYS },
] as const satisfies readonly CronField[];

/**
 * What is wrong with a cron expression, in words; undefined for one that Temporal takes and that has a time to run at. Five
 * fields, each `*`, values, ranges `1-5`, steps `5/15`, and lists of these; months and days of the week also by their names.
 * (Temporal also takes a sixth and a seventh field, for years and seconds, and `@daily`: those are no cron to most readers.)
 */
export function cronFault(text: string): string | undefined {
  const parts = text.trim().split(/\s+/);
  if (parts.length !== FIELDS.length) return `it has ${parts.length} field${parts.length === 1 ? '' : 's'}`;
  const values: ReadonlySet<number>[] = [];
  for (const [i, field] of FIELDS.entries()) {
    const found = fieldValues(parts[i] ?? '', field);
    if (typeof found === 'string') return found;
    values.push(found);
  }
  const [, , days = new Set(), months = new Set()] = values;
  const first = Math.min(...days);
  if ([...months].every((month) => first > (LENGTHS[month - 1] ?? 0))) {
    return `no month that it names has a day ${first}, so it would never run`;
  }
  return undefined;
}

/** The values a field has, or what is wrong with it. */
function fieldValues(text: string, field: CronField): ReadonlySet<number> | string {
  const values = new Set<number>();
  for (const part of text.split(',')) {
    const range = partRange(part, field);
    if (range === undefined)
      return `its ${field.name} has ${JSON.stringify(part)}, expected ${expectedIn(part, field)}`;
    for (let value = range.from; value <= range.to; value += range.step) values.add(value);
  }
  return values;
}

function partRange(
  part: string,
  field: CronField,
): { readonly from: number; readonly to: number; readonly step: number } | undefined {
  const [range = '', steps, ...tooMany] = part.split('/');
  const step = steps === undefined ? 1 : /^\d{1,4}$/.test(steps) ? Number(steps) : 0;
  if (step < 1 || tooMany.length > 0) return undefined;
  if (range === '*') return { from: field.min, to: field.max, step };
  const [first = '', last, ...more] = range.split('-');
  const from = valueOf(first, field);
  // `5/10` means from 5 to the end.
  const to = last !== undefined ? valueOf(last, field) : steps === undefined ? from : field.max;
  return from === undefined || to === undefined || to < from || more.length > 0 ? undefined : { from, to, step };
}

function valueOf(text: string, { min, max, words }: CronField): number | undefined {
  if (/^\d{1,2}$/.test(text)) return Number(text) >= min && Number(text) <= max ? Number(text) : undefined;
  const word = text.length < 3 ? -1 : words.findIndex((name) => name.startsWith(text.toLowerCase()));
  return word < 0 ? undefined : min + word;
}

/** What was expected in place of a part: of one whose values are right by themselves, what is wrong with its step or its order. */
function expectedIn(part: string, field: CronField): string {
  const [range = '', step, ...tooMany] = part.split('/');
  const [first = '', last, ...more] = range.split('-');
  if (step !== undefined && tooMany.length === 0 && partRange(range, field)) return 'a step of 1 to 9999 behind its /';
  const ends = [first, last ?? ''].map((end) => valueOf(end, field));
  if (more.length === 0 && ends.every((end) => end !== undefined)) return 'a range from the smaller to the greater';
  return expectedOf(field);
}

function expectedOf({ min, max, words: [first, second] }: CronField): string {
  const words = first && second ? ` or names such as ${first.slice(0, 3)} and ${second.slice(0, 3)}` : '';
  return `${min} to ${max}${words}`;
}
