const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const FORM = /^(\d{1,6})(s|m|h|d)$/;

/** What a duration looks like, for messages. */
export const DURATION_FORM = 'a duration such as 90s, 15m, 2h or 1d, and at most 365d';

/** Milliseconds of a duration such as `90s`, `15m`, `2h` or `1d`; undefined for anything else, nothing and more than a year. */
export function durationMs(text: string): number | undefined {
  const match = FORM.exec(text);
  if (!match) return undefined;
  const ms = Number(match[1]) * UNITS[match[2] as keyof typeof UNITS];
  return ms > 0 && ms <= 365 * UNITS.d ? ms : undefined;
}
