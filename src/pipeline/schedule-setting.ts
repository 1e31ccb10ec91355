import { z } from 'zod';
import { spelledZone } from '../calendar/zone.js';
import { DEFAULTS } from '../contract.js';
import { Failure } from '../failure.js';
import { cronFault } from './cron.js';
import { nearZone } from './near-zone.js';
import type { PipelineSchedule } from './pipeline.js';
import { InputFailure } from './input-failure.js';
import { exactObject, shaped, wholeNumber } from './shape.js';

const CRON_FORM = 'a cron expression of five fields such as "15 2 * * *"';
/** What may stand behind a comma of a cron: a value or a range, with the fields after it. */
const CUT_FIELD = /^(\*|\d{1,2}|[a-z]{3,9})([-/][\da-z*]+)*( .*)?$/i;
/** Said of a cron that YAML has taken apart, since within braces a comma ends a value. */
const CUT_CRON = `${CRON_FORM}; a comma within braces ends it unless it stands in quotes, as in cron: "15 2 * * 1,3,5"`;

/** Minute, hour, day of the month, month, day of the week, as Temporal reads them. */
const cron = z.custom<string>((value) => typeof value === 'string' && cronFault(value) === undefined, {
  error: ({ input }) => cronExpected(input),
});

const scheduleObject = exactObject('setting', `${CRON_FORM}, or { cron: "15 2 * * *", heal: 30 }`, {
  cron,
  zone: z
    .custom<string>((value) => typeof value === 'string' && spelledZone(value) === value, {
      error: ({ input }) => zoneExpected(input),
    })
    .optional(),
  last: wholeNumber(1, 10_000).optional(),
  lookback: wholeNumber(0, 10_000).optional(),
  heal: wholeNumber(1, 100_000).optional(),
});

/** The setting `schedule`: a cron expression, or an object with one. (A union of the two would say of neither what is wrong in it.) */
export const scheduleSetting = z
  .custom<string | z.infer<typeof scheduleObject>>(() => true)
  .superRefine((given, context) => {
    if (isCut(given)) {
      context.addIssue({ code: 'custom', path: ['cron'], message: CUT_CRON });
      return;
    }
    const judged = (typeof given === 'string' ? cron : scheduleObject).safeParse(given);
    for (const issue of judged.error?.issues ?? []) context.addIssue({ ...issue });
  });

/** A schedule with its defaults; `zone` is the pipeline's own. */
export function schedule(given: z.infer<typeof scheduleSetting>, zone: string): PipelineSchedule {
  const { cron: text, ...rest } = typeof given === 'string' ? { cron: given } : given;
  return { zone, last: DEFAULTS.scheduledLast, ...rest, cron: text.trim().replace(/\s+/g, ' ') };
}

/** Judges a schedule that stands in no file, as the setting `schedule` is judged. Throws `InvalidInput` with all that is wrong. */
export function parseSchedule(given: Readonly<Record<string, unknown>>, zone: string): PipelineSchedule {
  const { data, problems } = shaped(scheduleSetting, given);
  if (!data || problems.length > 0) {
    throw new InputFailure((wording) =>
      shaped(scheduleSetting, given, wording)
        .problems.map(({ message }) => message)
        .join(' '),
    );
  }
  const asked = schedule(data, zone);
  const fault = zoneFault(asked);
  if (fault !== undefined) throw new Failure('InvalidInput', fault);
  return asked;
}

/**
 * What is wrong with the zone that a schedule has, in words; undefined where it is spelled as Temporal's server wants it, which
 * knows no `europe/vienna`. PostgreSQL does, so a partition's zone, which the schedule has where it says none, may be spelled so.
 */
export function zoneFault({ zone }: Pick<PipelineSchedule, 'zone'>): string | undefined {
  const spelled = spelledZone(zone);
  if (spelled === undefined || spelled === zone) return undefined;
  return `Temporal's schedules take no ${zone}: write ${spelled} as partition.zone, or as the schedule's own zone.`;
}

/** Whether YAML has read what stands behind a comma of a cron as settings of their own: each without a value. */
function isCut(given: unknown): boolean {
  if (typeof given !== 'object' || given === null) return false;
  const others = Object.entries(given).filter(([name]) => !(name in scheduleObject.shape));
  return 'cron' in given && others.some(([name, value]) => value === null && CUT_FIELD.test(name));
}

function zoneExpected(given: unknown): string {
  const spelled = typeof given === 'string' ? spelledZone(given) : undefined;
  const near = spelled === undefined ? nearZone(given) : `. Did you mean ${spelled}?`;
  return `an IANA time zone such as UTC or America/New_York${near}`;
}

function cronExpected(given: unknown): string {
  const fault = typeof given === 'string' ? cronFault(given) : undefined;
  return fault === undefined ? CRON_FORM : `${CRON_FORM}; ${fault}`;
}
