import { isMap, isScalar, LineCounter, type Node, parseDocument, visit } from 'yaml';
import { type FileToRead, invalidPipeline } from './invalid-pipeline.js';
import { nearestNames } from './nearest-name.js';
import { readSqlSettings, type ReadSettings, SETTING_NAMES } from './settings.js';
import type { ShapeProblem } from './shape.js';

const MARKER = /^\s*--+[ \t]*repave\s*:?\s*$/i;
const COMMENT = /^\s*--/;

/** Settings that stand inside another one, each with the one it belongs to. */
const NESTED: Readonly<Record<string, string>> = {
  column: 'partition: { column: …, by: … }',
  by: 'partition: { column: …, by: … }',
  zone: 'partition: { column: …, by: …, zone: … }',
  attempts: 'retry: { attempts: … }',
  giveUpAfter: 'retry: { giveUpAfter: … }',
  rows: 'checks: [{ rows: { min: … } }]',
  unique: 'checks: [{ unique: [ … ] }]',
  not_null: 'checks: [{ not_null: [ … ] }]',
};

/** A SQL file taken apart: its settings and the query below them. */
export interface SqlFile {
  readonly settings: ReadSettings;
  readonly query: string;
  /** The file's line, from 1, in which `query` begins. */
  readonly queryLine: number;
}

/**
 * Reads the header of a SQL file: YAML in the leading `--` lines behind the line `-- repave`, up to the first line that is
 * no comment. Lines of prose in it are passed over. Throws `InvalidPipeline` with the file's line for what is missing, unknown or of another form.
 */
export function readSqlFile(file: FileToRead, content: string): SqlFile {
  const lines = content.replace(/^\uFEFF/, '').split('\n');
  let marker = 0;
  while (marker < lines.length && /^\s*(--|$)/.test(lines[marker] ?? '') && !MARKER.test(lines[marker] ?? '')) marker++;
  if (!MARKER.test(lines[marker] ?? '')) throw invalidPipeline(file, 1, missingHeader(content));
  let end = marker + 1;
  while (COMMENT.test(lines[end] ?? '')) end++;
  const yaml = lines.slice(marker + 1, end).map((line) => line.replace(/^\s*--[ \t]?/, '').replace(/\r$/, ''));
  const settings = readHeader(file, yaml.map(proseAsComment).join('\n'), marker + 2);
  return { settings, query: lines.slice(end).join('\n'), queryLine: end + 1 };
}

/**
 * Formatters remove the empty line between the header and a comment below it, and break long comments. So a line that sets
 * nothing is a comment, but not where its first word may be a setting that lacks its colon.
 */
function proseAsComment(line: string): string {
  const [firstWord = ''] = /^[^\s:]+/.exec(line) ?? [];
  const isYaml = line === '' || /^[\s\]}[{#,"'&*!|>%@?-]/.test(line) || /^\w+\s*:/.test(line);
  return isYaml || nearestNames(firstWord, SETTING_NAMES).length > 0 ? line : `# ${line}`;
}

function readHeader(file: FileToRead, yaml: string, firstLine: number): ReadSettings {
  const counter = new LineCounter();
  const document = parseDocument(yaml, { lineCounter: counter, prettyErrors: false });
  const lineOf = (offset: number): number => counter.linePos(offset).line + firstLine - 1;
  const [problem] = [...document.errors, ...document.warnings];
  if (problem) {
    throw invalidPipeline(
      file,
      lineOf(problem.pos[0]),
      `the header is not YAML: ${problem.message}. Comments in it begin with #, as in \`-- # a comment\`.`,
    );
  }
  if (!isMap(document.contents)) {
    throw invalidPipeline(
      file,
      firstLine - 1,
      'the header holds no settings: expected lines such as `-- target: sales_summary`.',
    );
  }
  // YAML reads `version: 1.10` as 1.1 and `start: 1997` as a number; what was written is meant.
  visit(document, {
    Alias() {
      throw invalidPipeline(file, firstLine - 1, 'the header uses a YAML alias (*name): write the value out.');
    },
    Pair(_, pair) {
      const wantsText = isScalar(pair.key) && (pair.key.value === 'version' || pair.key.value === 'start');
      if (wantsText && isScalar(pair.value) && pair.value.source !== undefined) pair.value.value = pair.value.source;
    },
  });
  const read = readSqlSettings(document.toJS());
  if (read.settings) return read.settings;
  const [first, ...others] = read.problems;
  const more = others.length > 0 ? ` (${others.length} more after that)` : '';
  const line = lineOf(offsetOf(document.contents, first?.path ?? []));
  throw invalidPipeline(file, line, `${first?.message ?? 'invalid'}${indentationHint(read.problems)}${more}`);
}

/** Where the setting of a path is written; the nearest enclosing one where it is missing. */
function offsetOf(root: Node, path: readonly PropertyKey[]): number {
  let offset = root.range?.[0] ?? 0;
  let node: unknown = root;
  for (const part of path) {
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
      if (!pair) return offset;
      offset = (pair.key as Node).range?.[0] ?? offset;
      node = pair.value;
    } else {
      const item: unknown = (node as { items?: unknown[] } | null)?.items?.[Number(part)];
      if (!item) return offset;
      offset = (item as Node).range?.[0] ?? offset;
      node = item;
    }
  }
  return offset;
}

function indentationHint(problems: readonly ShapeProblem[]): string {
  const flattened = problems.flatMap(({ path, message }) => {
    const [name] = path;
    return path.length === 1 && message.startsWith('unknown') && typeof name === 'string' && NESTED[name]
      ? [NESTED[name]]
      : [];
  });
  return flattened[0] === undefined
    ? ''
    : ` If a formatter removed the indentation, write it on one line: ${flattened[0]}.`;
}

function missingHeader(content: string): string {
  const block = /^\s*\/\*[^]*?\brepave\b/i.test(content) ? ' The header is written in `--` lines, not in /* … */.' : '';
  return (
    'no header: expected the line `-- repave`, then settings such as `-- target: sales_summary`, each in a `--` line, ' +
    `before the query.${block}`
  );
}
