import type { Command } from 'commander';
import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Settings } from '../settings.js';
import { temporalServer } from '../temporal/temporal-server.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { OpenDatabases } from './check-pipelines.js';
import { pipelinesFolder } from './database.js';
import { examineDatabase, examineSource } from './examine-database.js';
import { examinePipeline, examineZones } from './examine-pipeline.js';
import { EXIT, type ExitCode, tell } from './exit.js';
import { type Finding, fine, wrong } from './finding.js';
import { counted } from './format.js';
import { packageVersion } from './package-version.js';
import { examineSearchAttributes } from './search-attributes.js';
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
  const databases = new OpenDatabases(settings);
  try {
    findings.push(...(await examineDatabases(databases, pipelines)));
    findings.push(...(await examineSources(databases, pipelines)));
    findings.push(...(await examinePipelines(databases, pipelines)));
  } finally {
    await databases.close();
  }
  findings.push(...(await examineTemporal(settings)));

  const { colors } = output;
  const marks = { fine: colors.green('✓'), unsure: colors.yellow('!'), wrong: colors.red('✗') };
  const worst = findings.filter(({ state }) => state === 'wrong');
  output.document({ ok: worst.length === 0, findings });
  for (const { state, text, advice } of findings) {
    output.result(`${marks[state]} ${text}`);
    for (const line of advice?.split('\n') ?? []) output.result(`  ${colors.dim('→')} ${line}`);
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
async function examineDatabases(databases: OpenDatabases, pipelines: readonly Pipeline[]): Promise<Finding[]> {
  const variables =
    pipelines.length > 0 ? new Set(pipelines.map(({ database }) => database)) : new Set(['DATABASE_URL']);
  const findings: Finding[] = [];
  for (const variable of variables) {
    const own = pipelines.filter(({ database }) => database === variable);
    findings.push(
      ...(await reaching(`database (${variable})`, async () => {
        const database = await databases.open(variable);
        const zones = new Set(own.map(({ partition }) => partition.zone));
        return [...(await examineDatabase(database, own)), ...(await examineZones(database, zones))];
      })),
    );
  }
  return findings;
}

/** The databases that queries read from, where those are others. */
async function examineSources(databases: OpenDatabases, pipelines: readonly Pipeline[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const variable of new Set(pipelines.flatMap((pipeline) => sourceOf(pipeline) ?? []))) {
    const zones = new Set(pipelines.filter((own) => sourceOf(own) === variable).map(({ partition }) => partition.zone));
    findings.push(
      ...(await reaching(`source (${variable})`, async () => {
        const source = await databases.open(variable);
        return [...(await examineSource(source, variable)), ...(await examineZones(source, zones))];
      })),
    );
  }
  return findings;
}

async function examinePipelines(databases: OpenDatabases, pipelines: readonly Pipeline[]): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const pipeline of pipelines) {
    // What cannot be reached has been said by then.
    const database = await databases.open(pipeline.database).catch(unreachable);
    const variable = sourceOf(pipeline);
    const source = variable === undefined ? undefined : await databases.open(variable).catch(unreachable);
    if (!database) continue;
    const examine = (): Promise<Finding[]> => examinePipeline(database, pipeline, source);
    findings.push(...(await reaching(`pipeline ${pipeline.name}`, examine)));
  }
  return findings;
}

function unreachable(error: unknown): undefined {
  if (!(error instanceof Failure)) throw error;
}

function sourceOf(pipeline: Pipeline): string | undefined {
  return pipeline.kind === 'sql' ? pipeline.source : undefined;
}

/** What `examine` finds; where a server keeps it from finding anything, that. */
async function reaching(what: string, examine: () => Promise<Finding[]>): Promise<Finding[]> {
  try {
    return await examine();
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return [{ ...wrong(what, error.message), unreachable: error.type === 'DatabaseUnavailable' }];
  }
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
        await examineSearchAttributes(repave.temporal.connection, namespace),
      ];
    });
  } catch (error) {
    const { exitCode, message } = tell(error);
    if (exitCode === EXIT.defect) throw error;
    return [{ ...wrong('Temporal', message), unreachable: exitCode === EXIT.unreachable }];
  }
}
