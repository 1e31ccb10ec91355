import type { Command } from 'commander';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Settings } from '../settings.js';
import { describePipeline } from '../warehouse/describe.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder, withDatabase } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted } from './format.js';

interface Checked {
  readonly name: string;
  readonly problems: readonly string[];
  /** The database could not be asked: only the file was checked. */
  readonly unasked?: string;
}

/** `repave check`: reads every pipeline file and asks the database what it makes of it. Moves no row. */
export function registerCheck(program: Command): void {
  addCommand(program, 'check [pipeline]', {
    summary: 'check pipeline files, alone and against the database',
    examples: ['repave check', 'repave check sales_summary --json'],
    after: 'Exits with 1 where a problem was found. Without a database only the files are checked, which is said.',
  }).action(runs(check));
}

async function check(
  { settings, output }: Context,
  [only]: readonly [string | undefined],
  _options: CommonOptions,
): Promise<ExitCode> {
  const { pipelines, broken } = await loadPipelines(pipelinesFolder(settings));
  const names = [...pipelines.keys(), ...broken.keys()].filter((name) => only === undefined || name === only).sort();
  if (only !== undefined && names.length === 0) {
    const known = [...pipelines.keys(), ...broken.keys()].sort().join(', ');
    throw new Failure(
      'UnknownPipeline',
      `There is no pipeline ${JSON.stringify(only)}. There are: ${known || 'none'}.`,
    );
  }
  const results: Checked[] = [];
  for (const name of names) {
    const pipeline = pipelines.get(name);
    const failure = broken.get(name);
    results.push(
      pipeline
        ? await checkAgainst(settings, pipeline)
        : { name, problems: [failure?.message ?? 'It cannot be read.'] },
    );
  }

  const faulty = results.filter(({ problems }) => problems.length > 0);
  output.document({ ok: faulty.length === 0, pipelines: results });
  const { colors } = output;
  for (const { name, problems, unasked } of results) {
    output.result(problems.length > 0 ? `${colors.red('✗')} ${name}` : `${colors.green('✓')} ${name}`);
    for (const problem of problems) output.result(`  ${problem}`);
    if (unasked !== undefined) output.say(`${name}: only its file was checked. ${unasked}`);
  }
  output.say(`${counted(results.length, 'pipeline')} checked, ${faulty.length} with problems`);
  return faulty.length > 0 ? EXIT.notWhole : EXIT.done;
}

async function checkAgainst(settings: Settings, pipeline: Pipeline): Promise<Checked> {
  const { name } = pipeline;
  try {
    return await withDatabase(settings, pipeline.database, async (database) => {
      return { name, problems: (await describePipeline(database, pipeline)).problems };
    });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (error.type === 'DatabaseUnavailable' || error.type === 'InvalidInput')
      return { name, problems: [], unasked: error.message };
    return { name, problems: [error.message] };
  }
}
