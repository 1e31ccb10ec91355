import type { Command } from 'commander';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Settings } from '../settings.js';
import type { Database } from '../warehouse/database.js';
import { describePipeline } from '../warehouse/describe.js';
import { registeredPipelines } from '../warehouse/ledger.js';
import { ledgerState } from '../warehouse/migrate.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder, withDatabase } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted } from './format.js';
import { targetOf } from './pipelines.js';

interface Checked {
  readonly name: string;
  readonly problems: readonly string[];
  /** The database could not be asked: only the file was checked. */
  readonly unasked?: string;
  /** The table, as the database names it where it could be asked, else as the file does. */
  readonly target?: string;
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
  const database = only === undefined ? undefined : pipelines.get(only)?.database;
  // Another file may have the target of the one that is asked for.
  const held = [...pipelines.values()].filter((pipeline) => only === undefined || pipeline.database === database);
  const described = new Map<string, Checked>();
  for (const pipeline of held) described.set(pipeline.name, await checkAgainst(settings, pipeline));
  const results = names.map((name) => {
    const found = described.get(name);
    if (!found) return { name, problems: [broken.get(name)?.message ?? 'It cannot be read.'] };
    return { ...found, problems: [...found.problems, ...sharedTarget(found, [...described.values()], pipelines)] };
  });

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

/** Two files with one target would overwrite each other: workers refuse the second. */
function sharedTarget(
  { name, target }: Checked,
  all: readonly Checked[],
  pipelines: ReadonlyMap<string, Pipeline>,
): string[] {
  const database = pipelines.get(name)?.database;
  return all
    .filter(
      (other) => other.name !== name && other.target === target && pipelines.get(other.name)?.database === database,
    )
    .map((other) => `${target} is the target of ${other.name} too: two pipelines would overwrite each other.`);
}

async function checkAgainst(settings: Settings, pipeline: Pipeline): Promise<Checked> {
  const { name } = pipeline;
  const inFile = targetOf(pipeline);
  try {
    return await withDatabase(settings, pipeline.database, async (database) => {
      const { target = inFile, problems } = await describePipeline(database, pipeline);
      return { name, target, problems: [...problems, ...(await registeredElsewhere(database, name, target))] };
    });
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (error.type === 'DatabaseUnavailable' || error.type === 'InvalidInput')
      return { name, target: inFile, problems: [], unasked: error.message };
    return { name, target: inFile, problems: [error.message] };
  }
}

/** Workers refuse a target that the ledger has as another pipeline's, such as that of a file since renamed. */
async function registeredElsewhere(database: Database, name: string, target: string): Promise<string[]> {
  if ((await ledgerState(database)) !== 'current') return [];
  const others = (await registeredPipelines(database)).filter(
    (other) => other.target === target && other.name !== name,
  );
  return others.map(
    (other) =>
      `${target} is registered in the ledger as the target of ${other.name}: workers refuse a second pipeline on it. ` +
      `Where ${other.name} is gone or renamed: DELETE FROM repave.pipeline WHERE name = '${other.name}'.`,
  );
}
