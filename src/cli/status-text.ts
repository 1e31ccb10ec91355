import type { FailedPartition } from '../warehouse/failed-partitions.js';
import type { BackfillState, BackfillView } from './backfill-state.js';
import { remarkOf, stateText } from './backfill-text.js';
import { ago, instant, number } from './format.js';
import type { Output } from './output.js';
import type { PipelineView } from './pipeline-view.js';
import { listAllFailed, shareOf } from './progress-words.js';
import { table } from './table.js';
import { cut, oneLine } from './width.js';

/** Pipelines under headings, the worst first: what failed, then what is missing, then what is outdated. */
export function pipelineTable(output: Output, pipelines: readonly PipelineView[]): string {
  const columns = [
    { heading: 'pipeline' },
    { heading: 'by' },
    ...['filled', 'failed', 'missing', 'outdated'].map((heading) => ({ heading, align: 'right' as const })),
    { heading: 'newest' },
  ];
  const worstFirst = [...pipelines].sort(
    (a, b) =>
      b.failed - a.failed ||
      (b.missing ?? 0) - (a.missing ?? 0) ||
      b.outdated - a.outdated ||
      a.name.localeCompare(b.name),
  );
  const { red, yellow } = output.colors;
  // A shape for those who see no colour; programs are given bare numbers.
  const marked = (count: number, shape: string, paint: (text: string) => string): string =>
    count > 0 && output.interactive ? paint(`${shape} ${number(count)}`) : number(count);
  return table(
    output,
    columns,
    worstFirst.map((view) => [
      view.name,
      view.by,
      number(view.filled),
      marked(view.failed, '×', red),
      view.missing === undefined ? '?' : marked(view.missing, '○', (text) => text),
      marked(view.outdated, '~', yellow),
      view.newest ?? '',
    ]),
  );
}

/** A failed partition as it is listed. */
export interface ListedFailure extends FailedPartition {
  /** Healing has tried it as often as it does, and tries it no more as it is. */
  readonly rests?: true;
}

/** Failed partitions of one pipeline, one a line, of those that rest with what to do; those that are not listed are counted. */
export function failureLines(output: Output, failed: readonly ListedFailure[], inAll = failed.length): string {
  const { colors } = output;
  const lines = failed.flatMap(({ pipeline, key, type, message, rests }) => [
    `${colors.red('✗')} ${key}  ${type}: ${oneLine(message)}`,
    ...(rests ? [`  it rests: healing tries it no more. Once it is mended: repave backfill ${pipeline} ${key}`] : []),
  ]);
  const [first] = failed;
  const more = inAll - failed.length;
  if (first && more > 0) lines.push(`  and ${number(more)} more: ${listAllFailed(first.pipeline)}`);
  return lines.join('\n');
}

/** Open backfills before those that have ended, what needs somebody first; else the newest first. */
export function backfillTable(output: Output, backfills: readonly BackfillView[]): string {
  const columns = [
    { heading: 'backfill' },
    { heading: 'state' },
    { heading: 'done', align: 'right' as const },
    { heading: 'failed', align: 'right' as const },
    { heading: 'started' },
    { heading: '' },
  ];
  const worstFirst = [...backfills].sort((a, b) => urgency(a) - urgency(b));
  return table(
    output,
    columns,
    worstFirst.map((view) => {
      const { id, failed, startedAt, progress } = view;
      const remark = oneLine(remarkOf(view));
      return [
        id,
        stateText(view, output.colors),
        shareOf(progress).join(' '),
        failed > 0 ? output.colors.red(number(failed)) : '0',
        output.interactive ? ago(startedAt) : instant(startedAt),
        output.interactive ? cut(remark, REMARK_COLUMNS) : remark,
      ];
    }),
  );
}

/** Columns of a remark on a terminal; `repave status <id>` has all of it. */
const REMARK_COLUMNS = 60;

const NEEDS_SOMEBODY: readonly BackfillState[] = ['terminated', 'timed out', 'lost', 'unknown'];

function urgency({ outcome, state, progress }: BackfillView): number {
  if (outcome !== null) return 2;
  return NEEDS_SOMEBODY.includes(state) || progress.phase === 'paused' ? 0 : 1;
}
