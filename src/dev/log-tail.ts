import { readFileSync } from 'node:fs';

/** The last lines of a log, indented; a note where there is nothing to read. */
export function logTail(file: string, lines = 12): string {
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trimEnd();
  } catch {
    text = '';
  }
  if (text === '') return '  (the log is empty)';
  return text
    .split('\n')
    .slice(-lines)
    .map((line) => `  ${line}`)
    .join('\n');
}
