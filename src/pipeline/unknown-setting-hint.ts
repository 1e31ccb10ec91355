import { TYPESCRIPT_ONLY } from './settings.js';
import type { ShapeProblem } from './shape.js';

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
  change: 'checks: [{ change: { maxPercent: … } }]',
  accepted: 'checks: [{ accepted: { column: [ … ] } }]',
  range: 'checks: [{ range: { column: { min: … } } }]',
  sum: 'checks: [{ sum: { column: "SELECT …" } }]',
  sql: 'checks: [{ sql: "SELECT …" }]',
};

/** Settings that hold others, each with what has to stand beside another one in it. */
const HOLDERS: Readonly<Record<string, string>> = { partition: 'column: …, by: …, ', retry: '' };

/** What is added to a problem of a SQL file's header that calls a setting unknown: how what was meant is written. */
export function unknownSettingHint({ path, message }: ShapeProblem): string {
  const [name] = path;
  if (path.length !== 1 || typeof name !== 'string' || !message.startsWith('unknown')) return '';
  const typescript = TYPESCRIPT_ONLY.includes(name)
    ? ` ${name} is TypeScript only: a setting of \`definePipeline\`, and of no SQL file.`
    : '';
  const nested = Object.hasOwn(NESTED, name) ? NESTED[name] : undefined;
  if (nested !== undefined) {
    return `${typescript} If a formatter removed the indentation, write it on one line: ${nested}.`;
  }
  if (typescript !== '') return typescript;
  const [holder = '', inner = '', ...rest] = name.split('.');
  if (inner !== '' && rest.length === 0 && Object.hasOwn(HOLDERS, holder)) {
    const beside = (HOLDERS[holder] ?? '').replace(`${inner}: …, `, '');
    return ` Settings within another one stand in braces: write \`${holder}: { ${beside}${inner}: … }\`.`;
  }
  return message.includes('Did you mean') ? '' : ` Where it is a comment, begin it with #: \`-- # ${name}: …\`.`;
}
