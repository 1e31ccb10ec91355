import { type Command, Option } from 'commander';
import { Failure } from '../failure.js';
import { loadPipeline } from '../pipeline/load.js';
import type { Settings } from '../settings.js';
import { queryDdl } from '../warehouse/query-ddl.js';
import { checkPipelines, OpenDatabases } from './check-pipelines.js';
import { checkLines, explanation } from './check-text.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted } from './format.js';

interface CheckOptions extends CommonOptions {
  readonly verbose?: boolean;
  readonly ddl?: boolean;
}

/** `repave check`: reads every pipeline file and asks the database what it makes of them. Moves no row. */
export function registerCheck(program: Command): void {
  addCommand(program, 'check [pipeline]', {
    summary: 'check pipeline files, alone and against the database',
    examples: ['repave check', 'repave check sales_summary --json', 'repave check sales_summary --ddl'],
    after:
      'One that is named is explained too: its columns beside the table’s, the index by which old rows are found, the SQL.\n' +
      'Exits with 1 where a problem was found, else with 3 where a database or source that is named does not answer; warnings\n' +
      'alone are 0. Where the variable of one is not set, only what needs it not is checked, which is said.',
  })
    .addOption(new Option('--verbose', 'explain every pipeline'))
    .addOption(new Option('--ddl', 'write CREATE TABLE for the target of the one named, from its query’s columns'))
    .action(runs(check));
}

async function check(
  { settings, output }: Context,
  [only]: readonly [string | undefined],
  { ddl, verbose }: CheckOptions,
): Promise<ExitCode> {
  if (ddl) {
    if (only === undefined)
      throw new Failure('InvalidInput', '--ddl is given without a pipeline: expected `repave check PIPELINE --ddl`.');
    const statements = await ddlOf(settings, only);
    output.document({ name: only, ddl: statements });
    output.result(statements);
    return EXIT.done;
  }
  const pipelines = await checkPipelines(settings, only);
  const faulty = pipelines.filter(({ problems }) => problems.length > 0);
  const unreached = pipelines.filter((pipeline) => pipeline.unreached).length;
  output.document({ ok: faulty.length === 0 && unreached === 0, pipelines });
  for (const pipeline of pipelines) {
    const explained = verbose === true || only !== undefined;
    const lines = [...checkLines(pipeline, output), ...(explained ? explanation(pipeline, output) : [])];
    output.result(lines.join('\n'));
    if (pipeline.unasked !== undefined) {
      const checked = pipeline.fileOnly ? 'only its file was checked' : 'its queries were not checked where they run';
      output.say(`${pipeline.name}: ${checked}. ${pipeline.unasked}`);
    }
  }
  const warned = pipelines.filter(({ warnings }) => warnings.length > 0).length;
  output.say(
    `${counted(pipelines.length, 'pipeline')} checked, ${faulty.length} with problems${warned > 0 ? `, ${warned} with warnings` : ''}`,
  );
  if (faulty.length > 0) return EXIT.notWhole;
  return unreached > 0 ? EXIT.unreachable : EXIT.done;
}

async function ddlOf(settings: Settings, name: string): Promise<string> {
  const pipeline = await loadPipeline(pipelinesFolder(settings), name);
  if (pipeline.kind !== 'sql') {
    throw new Failure(
      'InvalidInput',
      `${name} is written in TypeScript, which says no types: --ddl is for pipelines in SQL.`,
    );
  }
  const databases = new OpenDatabases(settings);
  try {
    const database = await databases.open(pipeline.database);
    const source =
      pipeline.source === undefined ? undefined : await databases.open(pipeline.source, { readOnly: true });
    return await queryDdl(database, pipeline, source);
  } finally {
    await databases.close();
  }
}
