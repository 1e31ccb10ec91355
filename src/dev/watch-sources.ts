import { setTimeout as delay } from 'node:timers/promises';
import { type PipelineSources, pipelineSources } from './pipeline-sources.js';

/** Milliseconds between two looks. */
const BETWEEN_LOOKS_MS = 400;

/** What has become of one file. */
export interface SourceChange {
  /** Absolute. */
  readonly path: string;
  readonly what: 'is new' | 'changed' | 'is gone';
}

/**
 * Tells, one call after the other, how the pipelines' files and what they import have changed since `before`, until the
 * signal is aborted: once for what is changed together, when two looks have found the same.
 *
 * It looks at the texts. The system's own notice of changes (`fs.watch`) does not come for folders that are mounted from
 * another system, nor in every release of Node for folders made later, and would have to be told of each imported file.
 */
export async function watchSources(
  folder: string,
  before: PipelineSources,
  onChange: (changes: readonly SourceChange[]) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  let known = before;
  let last = before;
  while (!signal.aborted) {
    await delay(BETWEEN_LOOKS_MS, undefined, { signal }).catch(() => undefined);
    if (signal.aborted) return;
    const now = await pipelineSources(folder);
    const isSettled = differences(last, now).length === 0;
    last = now;
    const changes = differences(known, now);
    if (!isSettled || changes.length === 0) continue;
    known = now;
    await onChange(changes);
  }
}

function differences(before: PipelineSources, now: PipelineSources): SourceChange[] {
  const changes: SourceChange[] = [];
  for (const [path, text] of now) {
    const old = before.get(path);
    if (old === undefined) changes.push({ path, what: 'is new' });
    else if (old !== text) changes.push({ path, what: 'changed' });
  }
  for (const path of before.keys()) if (!now.has(path)) changes.push({ path, what: 'is gone' });
  return changes;
}
