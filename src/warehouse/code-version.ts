import type { Window } from '../calendar/calendar.js';
import type { ChangedFunction, TypeScriptPipeline } from '../pipeline/pipeline.js';
import { askCode } from './ask-code.js';
import type { FillRequest } from './fill-request.js';
import { refusedSetting } from './setting-failure.js';
import { versionText } from './version-text.js';

/**
 * The version that a function gives for a window now, as {@link versionText} keeps it. To be asked before a row is read: what is
 * committed in between, and stays, is then found to have changed. Throws `InvalidPipeline` for what is no text and no number,
 * `SourceFailed` where the function throws; the signal's reason once that is aborted.
 */
export async function codeVersion(
  { name }: TypeScriptPipeline,
  changed: ChangedFunction,
  window: Window,
  signal: AbortSignal,
): Promise<string> {
  const answer = await askCode(changed, 'changed()', { pipeline: name, window, signal });
  if (typeof answer === 'string' || typeof answer === 'bigint' || Number.isFinite(answer))
    return versionText(String(answer));
  const given =
    typeof answer === 'number' ? String(answer) : answer === null ? 'null' : `a value of type ${typeof answer}`;
  throw refusedSetting(name, 'changed', `gives ${given}: expected a text, a number or a bigint`);
}

/** What the function `changed` of a fill's pipeline says, as {@link codeVersion}; undefined where it has none: a query is asked with the rows. */
export async function versionByCode({ pipeline, window, signal, onStep }: FillRequest): Promise<string | undefined> {
  if (pipeline.kind === 'sql' || !pipeline.changed) return undefined;
  onStep?.('changed', 0);
  return codeVersion(pipeline, pipeline.changed, window, signal);
}
