import type { Command } from 'commander';
import { Failure } from '../failure.js';
import { loadPipeline } from '../pipeline/load.js';
import { parseSchedule } from '../pipeline/schedule-setting.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { pipelinesFolder } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { wholeNumber } from './keys.js';
import { scheduleRequest } from './schedule-request.js';
import { withClient } from './temporal-client.js';
import { asTyped, typedWording } from './typed.js';

interface AddOptions extends CommonOptions {
  readonly cron: string;
  readonly zone?: string;
  readonly last?: number;
  readonly lookback?: number;
  readonly heal?: number;
}

/** `repave schedule add`: makes a pipeline's schedules on Temporal. */
export function registerScheduleAdd(group: Command): void {
  const command = addCommand(group, 'add <pipeline>', {
    summary: 'fill a pipeline by a cron from now on, and heal it',
    examples: [
      "repave schedule add sales_summary --cron '15 2 * * *' --lookback 2 --heal 30",
      "repave schedule add rates/hourly --cron '5 * * * *' --zone UTC",
    ],
    after:
      'Each run fills by the time it was due, however late it is. Equal ones that are there already are left as they are;\n' +
      'others must be removed first.',
  });
  withTemporal(command)
    .requiredOption('--cron <expression>', 'minute, hour, day of the month, month, day of the week')
    .option('--zone <zone>', "time zone of the cron (default: the pipeline's)")
    .option('--last <n>', 'newest finished partitions that each run fills (default: 1)', wholeNumber)
    .option('--lookback <n>', "and the n before them, for rows that come late (default: the pipeline's)", wholeNumber)
    .option('--heal <n>', 'after each run, fill what is missing, failed or outdated among the last n', wholeNumber)
    .action(runs<readonly [string], AddOptions>(add));
}

async function add(
  { settings, output }: Context,
  [name]: readonly [string],
  { cron, zone, last, lookback, heal }: AddOptions,
): Promise<ExitCode> {
  const pipeline = await loadPipeline(pipelinesFolder(settings), name);
  if (pipeline.schedule) {
    throw new Failure(
      'InvalidInput',
      `The file of ${name} has a schedule: change it there, and bring it to Temporal with \`repave deploy\`.`,
    );
  }
  const given = Object.entries({ cron, zone, last, lookback, heal }).filter(([, value]) => value !== undefined);
  const schedule = await asTyped(typedWording(), async () =>
    parseSchedule(Object.fromEntries(given), pipeline.partition.zone),
  );
  const request = scheduleRequest(pipeline, schedule, 'schedule add');
  return withClient(settings, async ({ schedules }) => {
    const added = await schedules.add(request);
    output.document({ pipeline: name, added, schedule });
    const what = `${schedule.cron} (${schedule.zone})${schedule.heal === undefined ? '' : `, and healed over its last ${schedule.heal}`}`;
    output.result(added ? `${name} is filled at ${what}` : `${name} is filled at ${what} already`);
    output.say(`See \`repave schedule list\`.`);
    return EXIT.done;
  });
}
