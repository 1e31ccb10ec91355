import type { CheckedPipeline } from './checked-pipeline.js';
import { number } from './format.js';
import type { Output } from './output.js';
import { scheduleText } from './schedule-text.js';
import { table } from './table.js';
import { wrapped } from './wrapped.js';

/** What is wrong with a pipeline and what to look at, each on a line that begins with `file:line`, which editors open. */
export function checkLines(
  { name, file, schedule, problems, warnings, notes, unreached }: CheckedPipeline,
  output: Output,
): string[] {
  const { red, yellow, green, dim, bold } = output.colors;
  const found = [
    ...problems.map(({ line, message }) => ({ line, message, mark: red('✗') })),
    ...warnings.map(({ line, message }) => ({ line, message, mark: yellow('⚠') })),
    ...notes.map(({ line, message }) => ({ line, message, mark: dim('·') })),
  ];
  found.sort((a, b) => (a.line ?? 0) - (b.line ?? 0));
  const mark = problems.length > 0 ? red('✗') : warnings.length > 0 || unreached ? yellow('⚠') : green('✓');
  return [
    `${mark} ${bold(name)}`,
    ...(schedule ? [dim(`  ${scheduleText(schedule)}`)] : []),
    ...found.flatMap(({ line, message, mark: of }) => {
      const at = line === undefined ? `${file}:` : `${file}:${line}:`;
      if (!output.interactive) return [`  ${of} ${at} ${message}`];
      return [`  ${of} ${dim(at)}`, ...wrapped(message, output.columns - 4).map((part) => `    ${part}`)];
    }),
  ];
}

/** A pipeline explained: its columns beside the table's, how old rows are found, and what a fill sends. */
export function explanation(checked: CheckedPipeline, output: Output): string[] {
  const { target, partition, columns, left, deletes, sample } = checked;
  const { dim } = output.colors;
  if (target === undefined || !partition || (columns.length === 0 && !deletes)) return [];
  const lines = [`  ${target}, by ${partition.by} of ${partition.column}, zone ${partition.zone}`];
  if (columns.length > 0) {
    const headings = ['column', 'query', 'table', 'cast'].map((heading) => ({ heading }));
    const rows = [
      ...columns.map(({ name, type, targetType, cast }) => [name, type, targetType ?? '(none)', cast ?? '(none)']),
      ...left.map(({ name, type, value, kind }) => [
        name,
        '(not given)',
        type,
        kind === 'identity' ? 'identity' : `default ${value}`,
      ]),
    ];
    lines.push('', ...indented(table(output, headings, rows)));
  }
  if (deletes && deletes.tables.length > 0) {
    lines.push('', `  ${dim('old rows are found by')}`);
    for (const { table: name, indexes, pages } of deletes.tables) {
      const how = indexes.length > 0 ? `index ${indexes.join(', ')}` : `reading all of it, ${number(pages)} pages`;
      lines.push(`  ${name}: ${how}`);
    }
  }
  for (const { sql, parameters, at } of sample?.statements ?? []) {
    const where = at === undefined ? '' : ` to the server of ${at}`;
    lines.push('', `  ${dim(`sent for ${sample?.key}${where}`)}`, ...indented(sql));
    parameters.forEach(({ name, type, value }, i) => {
      lines.push(`    ${dim(`$${i + 1}`)} ${name} ${dim(type)} ${value}`);
    });
  }
  return lines;
}

function indented(text: string): string[] {
  return text.split('\n').map((line) => `  ${line}`);
}
