import { createHash } from 'node:crypto';
import type { Granularity } from '../calendar/calendar.js';
import type { TableName } from './pipeline.js';
import type { SqlToken } from './sql-tokens.js';

/** What decides a partition's content besides its query or code. */
export interface FingerprintedSettings {
  readonly target: TableName;
  readonly partition: { readonly column: string; readonly by: Granularity; readonly zone: string };
  readonly version?: string;
  readonly columns?: readonly string[];
}

/**
 * A SQL pipeline's fingerprint: `v1:` and SHA-256 over its settings and the texts of its query's tokens. Comments, layout and
 * the case of keywords and unquoted names do not count; everything else does, constants and the order of columns too. It must
 * stay the same over releases, or every partition would become outdated.
 */
export function sqlFingerprint(settings: FingerprintedSettings, tokens: readonly SqlToken[]): string {
  return fingerprint(settings, ['sql', ...tokenTexts(tokens)]);
}

/**
 * A TypeScript pipeline's fingerprint: over its settings, and over the given sources by path and text, unless the settings
 * name a `version`, which then stands for them.
 */
export function typescriptFingerprint(settings: FingerprintedSettings, sources: ReadonlyMap<string, string>): string {
  const counted = settings.version === undefined ? [...sources].sort(([a], [b]) => (a < b ? -1 : 1)) : [];
  return fingerprint(settings, ['typescript', ...counted.flat().map((text) => text.replaceAll('\r\n', '\n'))]);
}

/** The texts of a query's tokens as the fingerprint counts them: no comments, no semicolon, unquoted names in lower case. */
export function tokenTexts(tokens: readonly SqlToken[]): string[] {
  return tokens
    .filter(({ kind }) => kind !== 'comment' && kind !== 'semicolon')
    .map(({ kind, text }) => (kind === 'word' || kind === 'parameter' ? asciiLowerCase(text) : text));
}

function fingerprint(
  { target, partition, version, columns }: FingerprintedSettings,
  content: readonly string[],
): string {
  const counted = [
    [target.schema ?? null, target.table],
    [partition.column, partition.by, partition.zone],
    version ?? null,
    columns ?? null,
    content,
  ];
  return `v1:${createHash('sha256').update(JSON.stringify(counted)).digest('hex')}`;
}

/** As PostgreSQL folds names: letters of ASCII only. */
function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
