import { isMap, isNode, isScalar, LineCounter, type Node, parseDocument, visit } from 'yaml';
import type { FileProblem } from './invalid-pipeline.js';
import { nearestNames } from './nearest-name.js';
import { readSqlSettings, type ReadSqlSettings, SETTING_NAMES } from './settings.js';
import { unknownSettingHint } from './unknown-setting-hint.js';

const MARKER = /^\s*--+[ \t]*repave\s*:?\s*$/i;
const COMMENT = /^\s*--/;
/** A line with a cron that begins as no plain value of YAML may. */
const BARE_CRON = /(^|[\s{,])(schedule|cron):\s*[*@]/;
/** Settings that hold values of columns, which are equal to one or are not. */
const EQUALS: readonly unknown[] = ['scope', 'accepted'];
/** Digits of a number that come back from a double as they were, however many they are before or behind the point. */
const EXACT_DIGITS = 15;
const UNQUOTED_CRON = 'a cron that begins with * or @ must stand in quotes, as in `schedule: "*/15 * * * *"`';

/** A SQL file taken apart: its settings and the query below them. */
export interface SqlFile {
  /** Without what is wrong; absent where target or partition cannot be read. */
  readonly settings?: ReadSqlSettings;
  readonly problems: readonly FileProblem[];
  /** The file's line in which the setting of a path is written. */
  readonly lineOf: (path: readonly PropertyKey[]) => number;
  /** Absent where no header says that one follows. */
  readonly query?: string;
  /** The file's line, from 1, in which `query` begins. */
  readonly queryLine: number;
}

/**
 * Reads the header of a SQL file: YAML in the leading `--` lines behind the line `-- repave`, up to the first line that is
 * no comment. Lines of prose in it are passed over. Finds all that is missing, unknown or of another form, with its line.
 */
export function readSqlFile(content: string): SqlFile {
  const lines = content.replace(/^\uFEFF/, '').split('\n');
  let marker = 0;
  while (marker < lines.length && /^\s*(--|$)/.test(lines[marker] ?? '') && !MARKER.test(lines[marker] ?? '')) marker++;
  if (!MARKER.test(lines[marker] ?? ''))
    return { problems: [{ line: 1, message: missingHeader(content) }], lineOf: () => 1, queryLine: 1 };
  let end = marker + 1;
  while (COMMENT.test(lines[end] ?? '')) end++;
  const yaml = lines.slice(marker + 1, end).map((line) => line.replace(/^\s*--[ \t]?/, '').replace(/\r$/, ''));
  const header = readHeader(yaml.map(proseAsComment).join('\n'), marker + 2);
  return { ...header, query: lines.slice(end).join('\n'), queryLine: end + 1 };
}

/**
 * Formatters remove the empty line between the header and a comment below it, and break long comments. So a line that sets
 * nothing is a comment, but not where its first word has a colon behind it, or may be a setting that lacks its colon.
 */
function proseAsComment(line: string): string {
  const [firstWord = ''] = /^[^\s:]+/.exec(line) ?? [];
  const isYaml = line === '' || /^[\s\]}[{#,"'&*!|>%@?-]/.test(line) || /^(\S+|\w+\s+):(\s|$)/.test(line);
  return isYaml || nearestNames(firstWord, SETTING_NAMES).length > 0 ? line : `# ${line}`;
}

type Header = Pick<SqlFile, 'settings' | 'problems' | 'lineOf'>;

function readHeader(yaml: string, firstLine: number): Header {
  const counter = new LineCounter();
  const document = parseDocument(yaml, { lineCounter: counter, prettyErrors: false });
  const lineOf = (offset: number): number => counter.linePos(offset).line + firstLine - 1;
  const refused = (problems: readonly FileProblem[]): Header => ({ problems, lineOf: () => firstLine - 1 });
  const broken = [...document.errors, ...document.warnings];
  if (broken.length > 0) {
    const problems = broken.map(({ pos, message }) => {
      const { line } = counter.linePos(pos[0]);
      const isCron = BARE_CRON.test(yaml.split('\n')[line - 1] ?? '');
      const why = isCron ? UNQUOTED_CRON : `${message}. Comments in it begin with #, as in \`-- # a comment\``;
      return { line: line + firstLine - 1, message: `the header is not YAML: ${why}.` };
    });
    // Each * of a cron is a fault of its own.
    return refused(
      problems.filter(
        ({ line, message }, i) => problems.findIndex((p) => p.line === line && p.message === message) === i,
      ),
    );
  }
  if (!isMap(document.contents)) {
    const message = 'the header holds no settings: expected lines such as `-- target: sales_summary`.';
    return refused([{ line: firstLine - 1, message }]);
  }
  const borrowed: FileProblem[] = [];
  const refuse = (what: string): void => {
    borrowed.push({ line: firstLine - 1, message: `the header uses a YAML ${what}: write the value out.` });
  };
  // YAML reads `version: 1.10` as 1.1 and `start: 1997` as a number; what was written is meant.
  visit(document, {
    Alias() {
      refuse('alias (*name)');
    },
    Pair(_, pair) {
      if (isScalar(pair.key) && pair.key.source === '<<') refuse('merge key (<<)');
      const wantsText = isScalar(pair.key) && (pair.key.value === 'version' || pair.key.value === 'start');
      if (wantsText && isScalar(pair.value) && pair.value.source !== undefined) pair.value.value = pair.value.source;
      if (!isScalar(pair.key) || !isNode(pair.value)) return;
      if (EQUALS.includes(pair.key.value)) takeAsWritten(pair.value, () => true);
      if (pair.key.value === 'range') takeAsWritten(pair.value, isLongNumber);
    },
  });
  // What aliases of aliases stand for may be without end.
  if (borrowed.length > 0) return refused(borrowed.slice(0, 1));
  const root = document.contents;
  const lineOfPath = (path: readonly PropertyKey[]): number => lineOf(offsetOf(root, path));
  const { settings, problems } = readSqlSettings(document.toJS());
  return {
    settings,
    problems: problems.map((problem) => ({
      line: lineOfPath(problem.path),
      message: problem.message + unknownSettingHint(problem),
    })),
    lineOf: lineOfPath,
  };
}

/**
 * A column's value is what PostgreSQL makes of its text: as numbers, 0123 would be another text, and 9007199254740993 another
 * whole number, by which a scope would delete the rows of its neighbour. `which` of the texts count so.
 */
function takeAsWritten(node: Node, which: (text: string) => boolean): void {
  visit(node, {
    Scalar(key, scalar) {
      const { value, source } = scalar;
      if (key === 'key' || source === undefined || !which(source)) return;
      if (typeof value === 'number' ? Number.isFinite(value) : typeof value === 'boolean') scalar.value = source;
    },
  });
}

/** A bound may be written in any way, 1e6 or 0.0, unless it has more digits than a double. */
function isLongNumber(text: string): boolean {
  return text.replace(/e.*$/i, '').replace(/\D/g, '').replace(/^0+/, '').length > EXACT_DIGITS;
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

function missingHeader(content: string): string {
  const block = /^\s*\/\*[^]*?\brepave\b/i.test(content) ? ' The header is written in `--` lines, not in /* … */.' : '';
  return (
    'no header: expected the line `-- repave`, then settings such as `-- target: sales_summary`, each in a `--` line, ' +
    `before the query.${block}`
  );
}
