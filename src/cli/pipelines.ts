import type { Command } from 'commander';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { table } from './table.js';

/** `repave pipelines`: what the files of this project say, without asking any server. */
export function registerPipelines(program: Command): void {
  addCommand(program, 'pipelines', {
    summary: 'list the pipelines of this project',
    examples: ['repave pipelines', 'repave pipelines --json'],
    after: 'Exits with 1 where a file cannot be read; `repave check` says more.',
  }).action(runs(pipelines));
}

async function pipelines(
  { settings, output }: Context,
  _given: readonly unknown[],
  _options: CommonOptions,
): Promise<ExitCode> {
  const folder = pipelinesFolder(settings);
  const { pipelines: found, broken } = await loadPipelines(folder);
  const all = [...found.values()].sort((a, b) => a.name.localeCompare(b.name));
  output.document({
    pipelines: all.map(({ name, kind, file, partition, start, after, fingerprint, ...rest }) => {
      return { name, kind, file, target: targetOf(rest), ...partition, start, after, fingerprint };
    }),
    broken: [...broken].map(([name, { type, message }]) => ({ name, error: { type, message } })),
  });
  if (all.length === 0 && broken.size === 0)
    output.say(`No pipelines in ${folder}. \`repave init\` writes an example.`);
  else {
    const columns = ['pipeline', 'kind', 'target', 'column', 'by', 'zone', 'start'].map((heading) => ({ heading }));
    output.result(table(output, columns, all.map(rowOf)));
  }
  for (const [name, failure] of broken) output.say(output.errorColors.red(`✗ ${name}: ${failure.message}`));
  return broken.size > 0 ? EXIT.notWhole : EXIT.done;
}

function rowOf(pipeline: Pipeline): string[] {
  const { column, by, zone } = pipeline.partition;
  return [pipeline.name, pipeline.kind, targetOf(pipeline), column, by, zone, pipeline.start ?? ''];
}

/** The target as its file names it: `schema.table`. */
export function targetOf({ target }: Pick<Pipeline, 'target'>): string {
  return target.schema === undefined ? target.table : `${target.schema}.${target.table}`;
}
