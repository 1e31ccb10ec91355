import type { Command } from 'commander';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import { temporalServer } from '../temporal/temporal-server.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { pipelinesFolder, withDatabaseAt } from './database.js';
import { examineDatabase } from './examine-database.js';
import { EXIT, type ExitCode, tell } from './exit.js';
import { type Finding, fine, wrong } from './finding.js';
import { counted } from './format.js';
import { packageVersion } from './package-version.js';
import { noWorker, withClient } from './temporal-client.js';

/** `repave doctor`: looks at everything a worker needs, and says what is wrong and what to do. Changes nothing. */
export function registerDoctor(program: Command): void {
  const command = addCommand(program, 'doctor', {
    summary: 'look at everything that must be right',
    examples: ['repave doctor', 'repave doctor --json'],
    after: 'Exits with 0 where nothing is wrong, 1 where something is, 3 where a server cannot be reached.',
  });
  withTemporal(command).action(runs(doctor));
}

async function doctor(
  { settings, output }: Context,
  _given: readonly unknown[],
  _options: CommonOptions,
): Promise<ExitCode> {
  const findings: Finding[] = [
    fine(`Repave ${packageVersion()} on Node ${process.version}, project ${settings.project}`),
  ];
  const pipelines = await examineFiles(settings, findings);
  findings.push(...(await examineDatabases(settings, pipelines)));
  findings.push(...(await examineTemporal(settings)));

  const { colors } = output;
  const marks = { fine: colors.green('✓'), unsure: colors.yellow('!'), wrong: colors.red('✗') };
  const worst = findings.filter(({ state }) => state === 'wrong');
  output.document({ ok: worst.length === 0, findings });
  for (const { state, text, advice } of findings) {
    output.result(`${marks[state]} ${text}`);
    if (advice !== undefined) output.result(`  ${colors.dim('→')} ${advice}`);
  }
  if (findings.some(({ unreachable }) => unreachable)) return EXIT.unreachable;
  return worst.length > 0 ? EXIT.notWhole : EXIT.done;
}

async function examineFiles(settings: Settings, findings: Finding[]): Promise<Pipeline[]> {
  try {
    const { pipelines, broken } = await loadPipelines(pipelinesFolder(settings));
    findings.push(fine(`${counted(pipelines.size, 'pipeline')}: ${[...pipelines.keys()].join(', ') || 'none'}`));
    for (const [name, failure] of broken) findings.push(wrong(`pipeline ${name}`, failure.message));
    return [...pipelines.values()];
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    findings.push(wrong('pipelines', error.message));
    return [];
  }
}

/** One look a database: several pipelines may name the same variable. */
async function examineDatabases(settings: Settings, pipelines: readonly Pipeline[]): Promise<Finding[]> {
  const variables =
    pipelines.length > 0 ? new Set(pipelines.map(({ database }) => database)) : new Set(['DATABASE_URL']);
  const findings: Finding[] = [];
  for (const variable of variables) {
    const own = pipelines.filter(({ database }) => database === variable);
    try {
      const examine = (url: string): Promise<Finding[]> =>
        withDatabaseAt(url, (database) => examineDatabase(database, own));
      findings.push(...(await examine(databaseUrl(settings, variable))));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      findings.push({
        ...wrong(`database (${variable})`, error.message),
        unreachable: error.type === 'DatabaseUnavailable',
      });
    }
  }
  return findings;
}

async function examineTemporal(settings: Settings): Promise<Finding[]> {
  try {
    return await withClient(settings, async (repave) => {
      const { serverVersion } = await repave.temporal.workflowService.getSystemInfo({});
      const { namespace } = repave.temporal.options;
      const said = await noWorker(repave);
      return [
        fine(`Temporal ${serverVersion ?? ''} at ${temporalServer(settings).address}, namespace ${namespace}`),
        said === undefined ? fine(`a worker polls the task queue ${repave.taskQueue}`) : wrong('no worker', said),
      ];
    });
  } catch (error) {
    const { exitCode, message } = tell(error);
    if (exitCode === EXIT.defect) throw error;
    return [{ ...wrong('Temporal', message), unreachable: exitCode === EXIT.unreachable }];
  }
}
