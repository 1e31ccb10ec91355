import type { BackfillPlan } from '../activities/messages.js';
import type { Tally } from './tally.js';

/** A backfill's current details, as Temporal's UI shows them: Markdown, far below the server's limit of 20,000 bytes. */
export function currentDetails(plan: BackfillPlan, tally: Tally): string {
  const range = plan.first === undefined ? 'nothing to fill' : `${plan.first} to ${plan.last}`;
  const left = plan.total - tally.filled - tally.failed - tally.skipped;
  const lines = [
    `**${plan.pipeline}**, ${range} (${tally.phase})`,
    '',
    '| partitions | filled | failed | skipped | left | rows |',
    '| --- | --- | --- | --- | --- | --- |',
    `| ${plan.total} | ${tally.filled} | ${tally.failed} | ${tally.skipped} | ${left} | ${tally.rows} |`,
  ];
  if (tally.running.size > 0) lines.push('', `Filling: ${[...tally.running].slice(0, 10).join(', ')}`);
  if (tally.failures.length > 0) lines.push('', ...tally.failures.map((f) => `- \`${f.key}\` ${f.type}: ${f.message}`));
  return lines.join('\n');
}
