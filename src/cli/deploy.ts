import { type Command, Option } from 'commander';
import type { RepaveClient, ScheduleChange } from '../client.js';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Settings } from '../settings.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { pipelinesFolder } from './database.js';
import { type ProjectLedgers, projectLedgers } from './deploy-ledgers.js';
import { changeLines } from './deploy-text.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted } from './format.js';
import { lookbacksOf } from './lookbacks.js';
import { scheduleRequest } from './schedule-request.js';
import { withClient } from './temporal-client.js';

interface DeployOptions extends CommonOptions {
  readonly yes?: boolean;
}

/** `repave deploy`: brings the schedules on Temporal in line with what the project's files say. */
export function registerDeploy(program: Command): void {
  const command = addCommand(program, 'deploy', {
    summary: 'bring schedules in line with the pipeline files',
    examples: ['repave deploy', 'repave deploy --yes'],
    after:
      'Shows what differs, and with --yes applies it: adds, changes, and removes what no file asks for any more. Schedules by\n' +
      '`repave schedule add`, of another task queue or ledger, and of a file that cannot be read are left alone; a paused one stays paused.\n' +
      'Exits with 0 where nothing differs or all is applied, 1 where something differs, is refused by Temporal, or a file cannot be\n' +
      'read.',
  });
  withTemporal(command)
    .addOption(new Option('--yes', 'apply the difference'))
    .action(runs<readonly [], DeployOptions>((context, _given, { yes = false }) => deploy(context, yes)));
}

/** Shows what differs, and with `yes` applies it. */
export async function deploy({ settings, output }: Context, yes: boolean): Promise<ExitCode> {
  const { pipelines, broken } = await loadPipelines(pipelinesFolder(settings));
  const ledgers = await projectLedgers(settings, pipelines);
  const wanted = [...pipelines.values()].flatMap((pipeline) =>
    pipeline.schedule
      ? [scheduleRequest(pipeline, pipeline.schedule, 'deploy', ledgers.ids.get(pipeline.database))]
      : [],
  );
  const lookbacks = lookbacksOf(pipelines);
  return withClient(settings, async ({ schedules }) => {
    const { changes, leftAlone } = await schedules.compare(wanted, [...broken.keys()], [...ledgers.ids.values()]);
    const removed = changes.filter(({ kind }) => kind === 'removed').length;
    if (removed > 0 && pipelines.size + broken.size === 0) throw noPipelines(settings, removed);
    for (const change of changes) output.result(changeLines(change, output, lookbacks).join('\n'));
    for (const { pipeline, why, wanted: asked } of leftAlone) {
      output.say(`${pipeline} is left as it is: ${why}.${asked ? ' The schedule in its file is not made.' : ''}`);
    }
    for (const [name, failure] of broken) output.say(output.errorColors.red(`✗ ${name}: ${failure.message}`));
    const unmarked =
      changes.some(({ kind }) => kind !== 'removed') || leftAlone.some(({ ledger }) => ledger !== undefined);
    if (unmarked) for (const line of unaskedLines(ledgers)) output.say(line);
    const refused = yes ? await applied(schedules, changes) : [];
    for (const { pipeline, message } of refused) output.say(output.errorColors.red(`✗ ${pipeline}: ${message}`));
    output.document({
      applied: yes,
      changes,
      leftAlone,
      refused,
      broken: [...broken].map(([name, { type, message }]) => ({ name, error: { type, message } })),
    });
    const whole = broken.size === 0 && refused.length === 0 && !leftAlone.some((one) => one.wanted);
    if (changes.length === 0) output.say('Nothing to do: the schedules are as the files say.');
    else if (yes) output.say(`Applied to ${counted(changes.length - refused.length, 'pipeline')}.`);
    else output.say(`${counted(changes.length, 'pipeline')} to change. Apply it with:\n  repave deploy --yes`);
    if (removed > 0 && !yes) output.say(output.errorColors.red(removalText(removed, settings)));
    return whole && (yes || changes.length === 0) ? EXIT.done : EXIT.notWhole;
  });
}

/** A folder without a pipeline is more likely the wrong one than a project that has given up all it had. */
function noPipelines(settings: Settings, removed: number): Failure {
  return new Failure(
    'InvalidInput',
    `${pipelinesFolder(settings)} holds no pipeline, and the task queue ${settings.taskQueue} has the schedules of ${removed}, which \`repave deploy\` has made: ` +
      'nothing was changed. Run it in the project that has them; if they are to go, `repave schedule remove PIPELINE` takes each away.',
  );
}

/** What to make sure of before schedules go. */
function removalText(removed: number, { taskQueue }: Settings): string {
  return (
    `It removes the schedules of ${counted(removed, 'pipeline')}, which this project has no file of or whose file asks for none. ` +
    `They may be another project's that shares the task queue ${taskQueue}, and the ledger, or deployed by an earlier version of Repave: ` +
    'give each project its own (REPAVE_TASK_QUEUE).'
  );
}

/** What is not known of schedules while a ledger cannot be asked. */
function unaskedLines({ unasked }: ProjectLedgers): string[] {
  return [...unasked].map(
    ([variable, message]) =>
      `The ledger of ${variable} was not asked: ${message} What was made for it is left alone, and what is made now does not say that ` +
      'it was made for it: another project on this task queue may remove that.',
  );
}

/** A change that was not done. */
interface Refused {
  readonly pipeline: string;
  readonly type: string;
  readonly message: string;
}

/** Does the changes one by one, each whatever became of the others, and returns those that were refused. */
async function applied(schedules: RepaveClient['schedules'], changes: readonly ScheduleChange[]): Promise<Refused[]> {
  const refused: Refused[] = [];
  for (const change of changes) {
    try {
      await schedules.apply(change);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      refused.push({ pipeline: change.pipeline, type: error.type, message: error.message });
    }
  }
  return refused;
}
