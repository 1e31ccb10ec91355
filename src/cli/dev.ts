import type { Command } from 'commander';
import type { DevUp } from '../dev/dev.js';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Settings } from '../settings.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { number } from './format.js';
import type { Output } from './output.js';

interface DevOptions extends CommonOptions {
  readonly taskQueue?: string;
}

/** `repave dev`: PostgreSQL, Temporal and a worker on this machine, until Ctrl-C. */
export function registerDev(program: Command): void {
  addCommand(program, 'dev', {
    summary: 'run PostgreSQL, Temporal with its UI, and a worker on this machine',
    examples: ['repave dev', 'DATABASE_URL=postgres://me@localhost/warehouse repave dev'],
    after:
      'DATABASE_URL and TEMPORAL_ADDRESS replace the server of their kind: that database gets the ledger, and nothing else.\n' +
      'Everything is kept below .repave/ and is there again next time. Other commands find it from a second terminal.\n' +
      'Ctrl-C stops all of it; once more ends it at once.',
  })
    .option('--task-queue <name>', 'task queue of the worker (default: REPAVE_TASK_QUEUE, else `repave`)')
    .action(runs(dev));
}

async function dev({ settings, output }: Context, _given: readonly unknown[], _options: DevOptions): Promise<ExitCode> {
  // Loaded here alone: no other command needs what starts servers.
  const { runDev } = await import('../dev/dev.js');
  const pipeline = await pipelineToName(settings);
  const signal = await runDev({
    settings,
    say: (line) => output.say(output.errorColors.dim(line)),
    onUp: (up) => {
      output.document({ ...up });
      output.result(summary(up, settings.project, pipeline, output));
    },
  });
  output.say('Stopped.');
  return signal === 'SIGINT' ? EXIT.interrupted : EXIT.done;
}

function summary(up: DevUp, project: string, pipeline: string | undefined, output: Output): string {
  const { bold, cyan, dim } = output.colors;
  const row = (name: string, value: string, note = ''): string =>
    `  ${bold(name.padEnd(12))}${value}${note && dim(`  ${note}`)}`;
  const kept = `kept in ${project}/.repave`;
  const lines = [
    '',
    row('PostgreSQL', up.database, up.embedded ? `${kept}; password in dev.json there` : 'yours, from DATABASE_URL'),
    row('Temporal', up.temporal, up.ui ? kept : 'yours, from TEMPORAL_ADDRESS'),
    ...up.tried.map((line) => dim(`              ${line}`)),
    ...(up.ui ? [row('its UI', cyan(up.ui))] : []),
    row('worker', `pid ${up.workerPid}`, `task queue ${up.taskQueue}`),
    ...(up.loaded === undefined
      ? []
      : [row('example', `${number(up.loaded)} purchases of CDNOW loaded into the table sales`)]),
    '',
    'In a second terminal:',
    ...nextCommands(up.taskQueue, pipeline).map((command) => `  ${cyan(command)}`),
    '',
    'When a file in pipelines/ changes, or one that it imports, the worker starts again and takes it in.',
    'Ctrl-C stops everything.',
  ];
  return lines.join('\n');
}

/** The pipeline that the next commands are shown with: the example's where it is there, else the first; undefined: none. */
async function pipelineToName(settings: Settings): Promise<string | undefined> {
  try {
    const { pipelines, broken } = await loadPipelines(pipelinesFolder(settings));
    return pipelines.has(EXAMPLE) ? EXAMPLE : [...pipelines.keys(), ...broken.keys()][0];
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

const EXAMPLE = 'sales_summary';

/** What to do in a project once its servers are up: plan, start and look, or make a first pipeline. */
export function nextCommands(taskQueue: string, pipeline: string | undefined): string[] {
  if (pipeline === undefined) return ['npx repave init', 'npx repave check'];
  const example = pipeline === EXAMPLE;
  const input = JSON.stringify({ pipeline, ...(example ? { from: '1997-01-01', to: '1997-01-31' } : { last: 7 }) });
  return [
    `npx repave plan ${pipeline} ${example ? '--from 1997-01-01 --to 1997-01-31' : '--last 7'}`,
    `npx repave temporal workflow start --type backfill --task-queue ${taskQueue} --workflow-id ${example ? 'january' : 'newest'} --input '${input}'`,
    `npx repave status ${pipeline}`,
  ];
}
