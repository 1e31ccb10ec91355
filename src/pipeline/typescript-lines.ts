import { lineAt } from './invalid-pipeline.js';

const CALL = 'definePipeline(';

/**
 * The line in which a setting handed to `definePipeline` is written, by looking for its name behind the call: a TypeScript
 * file is not parsed. The line of the nearest that encloses it where it is not written, of the call where none is, and
 * undefined where the file makes no such call.
 */
export function settingLine(source: string, path: readonly PropertyKey[]): number | undefined {
  const text = withoutComments(source);
  const call = text.indexOf(CALL);
  if (call < 0) return undefined;
  let at = call + CALL.length;
  let found = call;
  for (const part of path) {
    if (typeof part !== 'string') continue;
    const name = part.replace(/[^\w]/g, '\\$&');
    const written = new RegExp(`(?<![\\w$.])(['"\`]?)${name}\\1\\s*[:(,}]`, 'g');
    written.lastIndex = at;
    const match = written.exec(text);
    if (!match) break;
    found = match.index;
    at = written.lastIndex;
  }
  return lineAt(text, found);
}

/** Spaces in the place of comments, so that every other character keeps its line. */
function withoutComments(source: string): string {
  return source.replace(/\/\*[^]*?\*\/|(?<![:'"`])\/\/[^\n]*/g, (comment) => comment.replace(/[^\n]/g, ' '));
}
