import type { BackfillResult, DownstreamResult } from '../contract.js';
import type { DownstreamPlan } from '../plan/downstream.js';
import { counted, number, span } from './format.js';
import type { Colors } from './output.js';
import type { PlannedRequest } from './plan-request.js';

/** What a plan says of what is filled behind it, one line a pipeline, in its order. */
export function downstreamLines({ downstream }: PlannedRequest): string[] {
  if (downstream === undefined) return [];
  if (downstream.length === 0) return ['Nothing depends on it.'];
  return downstream.flatMap(({ pipeline, ranges, total, notes, unserved }) => [
    `then ${`${pipeline} ${span(ranges[0]?.from, ranges.at(-1)?.to)}`.trimEnd()}: ${unserved ?? (total === 0 ? 'nothing to fill' : `${counted(total, 'partition')} to fill`)}`,
    ...notes,
  ]);
}

/** The same for programs. */
export function downstreamDocument({ pipeline, total, ranges, notes, unserved }: DownstreamPlan): object {
  return { pipeline, total, first: ranges[0]?.from, last: ranges.at(-1)?.to, notes, unserved };
}

/** How what depends on a backfill has ended, one line a pipeline. */
export function downstreamResults({ downstream = [] }: BackfillResult, { green, red }: Colors): string[] {
  return downstream.map((result) => {
    const { pipeline, first, last, filled, failed, total, id, reason } = result;
    const what = `${pipeline} ${span(first, last)}`.trimEnd();
    if (id === undefined && reason !== undefined) return `${red('✗')} ${what}: ${reason}`;
    if (total === 0) return `- ${what}: nothing to fill`;
    if (id === undefined) return `- ${what}: not begun`;
    const mark = isWhole(result) ? green('✓') : red('✗');
    return `${mark} ${what}: ${number(filled)} of ${counted(total, 'partition')} filled${failed > 0 ? `, ${number(failed)} failed` : ''}`;
  });
}

/** What to type where something that depends on a backfill was not filled; undefined where all was, or nothing was asked for. */
export function resumeDownstream({ downstream = [], ...own }: BackfillResult): string | undefined {
  const unserved = downstream.find(({ id, reason }) => id === undefined && reason !== undefined);
  if (unserved) {
    return (
      `Once a worker serves ${unserved.pipeline}, fill all that depends on it:\n` +
      `  repave backfill ${own.pipeline} ${span(own.first, own.last)} --downstream`
    );
  }
  const [first] = downstream.filter((result) => result.total > 0 && !isWhole(result));
  if (!first) return undefined;
  const fill = `Fill it and what comes after it:\n  repave backfill ${first.pipeline} ${span(first.first, first.last)} --downstream`;
  return first.id === undefined ? fill : `See why:\n  repave status ${first.id}\n${fill}`;
}

function isWhole({ total, filled, skipped, id }: DownstreamResult): boolean {
  return id !== undefined && filled + skipped === total;
}
