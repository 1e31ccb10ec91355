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
  readonly source?: string;
  readonly scope?: Readonly<Record<string, string>>;
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

/** A short hash of a setting's query, by the texts of its tokens: of another query it is another. It too must stay the same over releases. */
export function queryHash(tokens: readonly string[]): string {
  return createHash('sha256').update(JSON.stringify(tokens)).digest('hex').slice(0, 8);
}

function fingerprint(
  { target, partition, version, columns, source, scope }: FingerprintedSettings,
  content: readonly string[],
): string {
  const counted = [
    [target.schema ?? null, target.table],
    [partition.column, partition.by, partition.zone],
    version ?? null,
    columns ?? null,
    content,
    // Only where there is one: a hash that was made before these settings were known stays.
    ...(source === undefined && scope === undefined ? [] : [source ?? null, Object.entries(scope ?? {}).sort()]),
  ];
  return `v1:${createHash('sha256').update(JSON.stringify(counted)).digest('hex')}`;
}

/** As PostgreSQL folds names: letters of ASCII only. */
function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
}
