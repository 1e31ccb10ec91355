/** A given value as messages show it: short, and never a URL, which may hold a password. */
export function shownValue(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return value.length === 0 ? 'an empty list' : `a list of ${value.length}`;
  if (typeof value === 'function') return 'a function';
  if (typeof value === 'object') return 'an object';
  if (typeof value === 'number') return `${value} (a number)`;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'string') return `a ${typeof value}`;
  if (value.includes('://')) return 'a URL';
  return JSON.stringify(value.length > 80 ? `${value.slice(0, 80)}…` : value);
}
