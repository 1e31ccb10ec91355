import type { PartitionState } from '../contract.js';
import type { DemoHealOutcome, DemoPicture } from '../dev/demo-heal.js';
import type { Context } from './command.js';
import { demoFailed, isWholeDemo } from './demo-end.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted, duration, number } from './format.js';
import type { Colors, Output } from './output.js';
import { progressView } from './progress-view.js';

/** `repave demo heal`: breaks three dates of the demo's table, and has verify and a heal set them right. */
export async function demoHeal({ settings, output }: Context): Promise<ExitCode> {
  const startedAt = performance.now();
  const { runDemoHeal } = await import('../dev/demo-heal.js');
  const view = progressView(output);
  const pictures: Record<string, object> = {};
  try {
    const outcome = await runDemoHeal({
      project: settings.project,
      env: settings.env,
      say: (line) => output.say(line),
      onProgress: (progress) => view.show({ progress }),
      onPicture: (moment, picture) => {
        view.end();
        pictures[moment] = { counts: countsOf(picture), unfilled: picture.filter(({ state }) => state !== 'filled') };
        output.result(calendar(HEADINGS[moment], picture, output));
      },
    });
    view.end();
    if ('signal' in outcome) {
      output.say('The demo was stopped half-way; run again, it sets right what it broke. Nothing of it runs any more.');
      return EXIT.interrupted;
    }
    const seconds = (performance.now() - startedAt) / 1000;
    output.document({ ...pictures, ...outcome.value, seconds });
    output.result(summary(outcome.value, seconds, output.colors));
    return isWholeDemo(outcome.value) ? EXIT.done : EXIT.notWhole;
  } catch (error) {
    view.end();
    return demoFailed(error, output);
  }
}

const HEADINGS = {
  before: 'Before',
  broken: 'Broken in three ways, and found',
  healed: 'Healed',
} as const;

function summary({ result, report }: DemoHealOutcome, seconds: number, { green, red }: Colors): string {
  const { totals, differing } = report;
  return [
    '',
    `The heal filled ${counted(result.filled, 'partition')} of ${number(totals.partitions)}: those that were missing, failed or outdated.`,
    differing === 0
      ? `${green('✓')} all ${number(totals.partitions)} dates equal a fresh count of their purchases`
      : `${red('✗')} ${counted(differing, 'date')} differ from a fresh count of their purchases`,
    `${duration(seconds)} in all. Everything is stopped; the state is kept in .repave/demo.`,
  ].join('\n');
}

/** A month a line, a date a sign; shapes, so that it can be read without colour. */
function calendar(heading: string, picture: DemoPicture, { colors }: Output): string {
  const { bold, dim, green, red, yellow } = colors;
  const signs: Readonly<Record<PartitionState, string>> = {
    filled: green('■'),
    missing: '○',
    failed: red('×'),
    outdated: yellow('~'),
    changed: yellow('≠'),
  };
  const months = new Map<string, string>();
  for (const { key, state } of picture) {
    const month = key.slice(0, 7);
    months.set(month, (months.get(month) ?? '') + signs[state]);
  }
  const legend = Object.entries(countsOf(picture)).map(
    ([state, count]) => `${signs[state as PartitionState]} ${number(count)} ${state}`,
  );
  return [
    '',
    `${bold(heading)}  ${legend.join('  ')}`,
    ...[...months].map(([month, line]) => `  ${dim(month)}  ${line}`),
  ].join('\n');
}

function countsOf(picture: DemoPicture): Partial<Record<PartitionState, number>> {
  const counts: Partial<Record<PartitionState, number>> = {};
  for (const { state } of picture) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}
