import { Argument, type Command } from 'commander';
import type { DemoOutcome } from '../dev/demo.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { demoFailed, isWholeDemo } from './demo-end.js';
import { demoHeal } from './demo-heal.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted, duration, number } from './format.js';
import type { Output } from './output.js';
import { progressView } from './progress-view.js';

/** `repave demo`: fills a year and a half of real purchases on servers of its own, and shows what came of it. */
export function registerDemo(program: Command): void {
  addCommand(program, 'demo', {
    summary: 'fill 546 days of real purchases on servers of its own, show the result, stop everything',
    examples: ['repave demo', 'repave demo heal'],
    after:
      'Needs nothing that runs and touches no server of yours, whatever the environment names. Its state is kept in\n' +
      '.repave/demo; run again, it fills everything again and ends the same. `repave demo heal` then breaks three dates on\n' +
      'purpose, each in its own way, and has verify and a heal set them right.',
  })
    .addArgument(new Argument('[part]', 'break three dates, and heal them').choices(['heal']))
    .action(
      runs<readonly [string | undefined], CommonOptions>((context, [part]) =>
        part === 'heal' ? demoHeal(context) : demo(context),
      ),
    );
}

async function demo({ settings, output }: Context): Promise<ExitCode> {
  const startedAt = performance.now();
  // Loaded here alone: no other command needs what starts servers.
  const { runDemo } = await import('../dev/demo.js');
  const view = progressView(output);
  let fillingSince = startedAt;
  let filledAt: number | undefined;
  try {
    const outcome = await runDemo({
      project: settings.project,
      env: settings.env,
      say: (line) => output.say(line),
      onFilling: () => (fillingSince = performance.now()),
      onProgress: (progress) => view.show({ progress }),
      onFilled: () => {
        filledAt = performance.now();
        view.end();
      },
    });
    if ('signal' in outcome) {
      view.end();
      output.say('The demo was stopped half-way; run again, it goes on from there. Nothing of it runs any more.');
      return EXIT.interrupted;
    }
    const seconds = {
      filling: ((filledAt ?? performance.now()) - fillingSince) / 1000,
      whole: (performance.now() - startedAt) / 1000,
    };
    output.document({ ...outcome.value, seconds });
    output.result(picture(outcome.value, seconds, output));
    return isWholeDemo(outcome.value) ? EXIT.done : EXIT.notWhole;
  } catch (error) {
    view.end();
    return demoFailed(error, output);
  }
}

const BAR = 40;

function picture(
  outcome: DemoOutcome,
  seconds: { readonly filling: number; readonly whole: number },
  output: Output,
): string {
  const { report, result } = outcome;
  const { bold, blue, cyan, dim, green, red } = output.colors;
  const { totals, ledger, firstDay } = report;
  const largest = Math.max(...report.months.map(({ revenue }) => Number(revenue)), 1);
  const bars = report.months.map(({ month, orders, revenue }) => {
    const length = Math.max(1, Math.round((BAR * Number(revenue)) / largest));
    return `  ${month}  ${blue('█'.repeat(length))}${' '.repeat(BAR - length)} ${money(revenue).padStart(12)}  ${dim(`${number(orders).padStart(6)} orders`)}`;
  });
  const whole = isWholeDemo(outcome);
  return [
    '',
    bold('Revenue by month, from sales_summary'),
    ...bars,
    '',
    bold(
      `${counted(totals.partitions, 'partition')}, ${number(totals.orders)} orders, ${number(totals.units)} units, ${money(totals.revenue)} revenue`,
    ),
    `${firstDay.date}: ${number(firstDay.orders)} orders, ${money(firstDay.revenue)} revenue`,
    whole
      ? `${green('✓')} every date equals a fresh count of its purchases, and its row in the ledger`
      : `${red('✗')} ${counted(report.differing, 'date')} differ from a fresh count of their purchases, ${ledger.differing} from the ledger`,
    '',
    `The ledger: ${counted(ledger.filled, 'partition')} filled, ${number(ledger.failed)} failed; ${counted(ledger.fills, 'fill')} committed so far, ${number(result.filled)} of them in this run.`,
    `${duration(seconds.filling)} to fill, ${duration(seconds.whole)} in all. Everything is stopped; the state is kept in .repave/demo.`,
    '',
    'Next, the last two in a second terminal:',
    ...NEXT.map((command) => `  ${cyan(command)}`),
  ].join('\n');
}

const NEXT = [
  'npx repave dev',
  'npx repave plan sales_summary --from 1997-01-01 --to 1997-01-31',
  'npx repave backfill sales_summary 1997-01-01..1997-01-31',
];

/** Money as the server wrote it, with thousands set apart. */
function money(text: string): string {
  return text.replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, ',');
}
