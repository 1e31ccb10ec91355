/** How numbers, times and lists are said to people. */

const NUMBERS = new Intl.NumberFormat('en-US');

/** `2,500,315`. */
export function number(value: number): string {
  return NUMBERS.format(value);
}

/** `1 partition`, `2 partitions`. */
export function counted(value: number, noun: string): string {
  return `${number(value)} ${noun}${value === 1 ? '' : 's'}`;
}

/** Seconds as `0.4 s`, `9 s`, `12 s`, `3 min 20 s`, `2 h 5 min`. */
export function duration(seconds: number): string {
  if (seconds < 10 && !Number.isInteger(seconds)) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return joined(Math.floor(whole / 60), 'min', whole % 60, 's');
  return joined(Math.floor(whole / 3600), 'h', Math.floor((whole % 3600) / 60), 'min');
}

function joined(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large} ${largeUnit}` : `${large} ${largeUnit} ${small} ${smallUnit}`;
}

/** Bytes as `512 B`, `3.4 kB`, `120 MB`, `1.2 GB`, by thousands. */
export function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const power = value < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(value) / 3));
  const scaled = value / 1000 ** power;
  return `${power === 0 || scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${units[power]}`;
}

/** An instant as `2024-02-29 14:02:11 UTC`: UTC, so that two people read the same. */
export function instant(when: Date | string): string {
  return `${new Date(when).toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}

/** How long ago an instant was, as `12 s ago`, `4 min ago`, `3 h ago`, `2 d ago`. */
export function ago(when: Date | string, now: number = Date.now()): string {
  const seconds = Math.max(0, Math.round((now - new Date(when).getTime()) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3_600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3_600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}

/** `1997-01-01..1997-01-31`; one key where both are the same; empty where there is none. */
export function span(first: string | undefined, last: string | undefined): string {
  if (first === undefined || last === undefined) return '';
  return first === last ? first : `${first}..${last}`;
}

/** Cut to `width` columns, with `…` where something was left out. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`.slice(0, width);
}
