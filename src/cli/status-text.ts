import type { BackfillState, BackfillView } from './backfill-state.js';
import { line } from './frame.js';
import { ago, counted, instant, number } from './format.js';
import type { Colors, Output } from './output.js';
import type { FailedPartition, PipelineView } from './pipeline-view.js';
import { table } from './table.js';

/** Pipelines under headings, those with something wrong first. */
export function pipelineTable(output: Output, pipelines: readonly PipelineView[]): string {
  const columns = [
    { heading: 'pipeline' },
    { heading: 'by' },
    ...['filled', 'failed', 'missing', 'outdated'].map((heading) => ({ heading, align: 'right' as const })),
    { heading: 'newest' },
  ];
  const worstFirst = [...pipelines].sort((a, b) => b.failed - a.failed || a.name.localeCompare(b.name));
  const { colors } = output;
  return table(
    output,
    columns,
    worstFirst.map((view) => [
      view.name,
      view.by,
      number(view.filled),
      view.failed > 0 ? colors.red(number(view.failed)) : '0',
      view.missing === undefined ? '?' : number(view.missing),
      number(view.outdated),
      view.newest ?? '',
    ]),
  );
}

/** Failed partitions, one a line; those that are not listed are counted. */
export function failureLines(output: Output, failed: readonly FailedPartition[], inAll = failed.length): string {
  const { colors } = output;
  const lines = failed.map(({ key, type, message }) => `${colors.red('✗')} ${key}  ${type}: ${message}`);
  const more = inAll - failed.length;
  return [...lines, ...(more > 0 ? [`  and ${number(more)} more`] : [])].join('\n');
}

/** Backfills under headings, the newest first. */
export function backfillTable(output: Output, backfills: readonly BackfillView[]): string {
  const columns = [
    { heading: 'backfill' },
    { heading: 'state' },
    { heading: 'filled', align: 'right' as const },
    { heading: 'started' },
  ];
  return table(
    output,
    columns,
    backfills.map(({ id, state, total, startedAt, progress, filled }) => {
      const done = `${number(progress?.filled ?? filled)}/${number(total)}`;
      return [id, said(state, output.colors), done, output.interactive ? ago(startedAt) : instant(startedAt)];
    }),
  );
}

/** Backfills one by one, with all that is known of each. */
export function backfillLines(output: Output, backfills: readonly BackfillView[]): string {
  return backfills
    .map((view) => {
      const { id, run, state, startedAt, endedAt, progress, total, filled, failed, skipped, rows } = view;
      const times = `started ${instant(startedAt)}${endedAt ? `, ended ${instant(endedAt)}` : ''}`;
      const counts = `${number(filled)} of ${counted(total, 'partition')} filled, ${number(failed)} failed, ${number(skipped)} skipped, ${counted(rows, 'row')}`;
      const now = progress
        ? line(progress, { perSecond: undefined })
        : state === 'running'
          ? 'no worker answers'
          : counts;
      return [
        `${output.colors.bold(id)}  ${said(state, output.colors)}`,
        `  ${now}`,
        `  ${times}`,
        `  run ${run}`,
      ].join('\n');
    })
    .join('\n');
}

function said(state: BackfillState, colors: Colors): string {
  switch (state) {
    case 'running':
      return colors.blue(state);
    case 'done':
      return colors.green(state);
    case 'incomplete':
    case 'failed':
    case 'terminated':
      return colors.red(state);
    case 'cancelled':
    case 'unknown':
      return state;
  }
}
