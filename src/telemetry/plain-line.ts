/** One JSON log line as a person reads it on a terminal: time, level, message, then the other fields. */
export function plainLine(json: string): string {
  const { time, level, msg, ...rest } = JSON.parse(json) as Record<string, unknown>;
  const clock = typeof time === 'string' ? time.slice(11, 19) : '';
  const mark = level === 'info' ? '' : `${String(level)}: `;
  const fields = Object.entries(rest).map(
    ([name, value]) => `${name}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  );
  return `${[clock, `${mark}${String(msg)}`, ...fields].join('  ')}\n`;
}
