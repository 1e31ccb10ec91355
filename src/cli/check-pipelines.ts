import { Failure } from '../failure.js';
import { afterProblems, type Order, orderOf } from '../pipeline/after.js';
import type { ExaminedPipeline } from '../pipeline/examined-pipeline.js';
import { examinePipelines } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import { formerRows } from '../warehouse/carry-over.js';
import { type Database, type DatabaseOptions, openDatabase } from '../warehouse/database.js';
import { describePipeline, type PipelineDescription } from '../warehouse/describe.js';
import { hasLedgerRows } from '../warehouse/has-ledger-rows.js';
import { type RegisteredPipeline, registeredPipelines } from '../warehouse/ledger.js';
import { ledgerState } from '../warehouse/migrate.js';
import { type PipelineProblem, type PipelineWarning, problemOf, setting } from '../warehouse/pipeline-problem.js';
import type { CheckedPipeline } from './checked-pipeline.js';
import { pipelinesFolder } from './database.js';
import { targetOf } from './pipelines.js';
import { changedGrid, type Claim, claimOf, idleFormer, registeredClaim, rivals } from './target-rivals.js';

/**
 * Checks a project's pipelines, or `only` one of them: their files, and what their databases make of them. Moves no row. Throws
 * `UnknownPipeline`.
 */
export async function checkPipelines(settings: Settings, only: string | undefined): Promise<CheckedPipeline[]> {
  const examined = await examinePipelines(pipelinesFolder(settings));
  const asked = examined.filter(({ file }) => only === undefined || file.name === only);
  if (only !== undefined && asked.length === 0) {
    const known = examined.map(({ file }) => file.name).join(', ');
    throw new Failure(
      'UnknownPipeline',
      `There is no pipeline ${JSON.stringify(only)}. There are: ${known || 'none'}.`,
    );
  }
  const databases = new OpenDatabases(settings);
  try {
    const held = new Map<ExaminedPipeline, HeldPipeline>();
    for (const file of examined) {
      // Another file may have the target of the one that is asked for.
      const beside = asked.some(({ pipeline }) => pipeline?.database === file.pipeline?.database);
      if (file.pipeline && (asked.includes(file) || beside)) {
        held.set(file, await hold(databases, settings, file.pipeline));
      }
    }
    return asked.map((file) => checked(file, held.get(file), [...held.values()], examined));
  } finally {
    await databases.close();
  }
}

/** A pipeline held against its database, as far as that could be asked. */
interface HeldPipeline {
  readonly pipeline: Pipeline;
  readonly claim: Claim;
  readonly description?: PipelineDescription;
  readonly registered: readonly RegisteredPipeline[];
  readonly problems: readonly PipelineProblem[];
  readonly warnings: readonly PipelineWarning[];
  readonly notes: readonly PipelineWarning[];
  readonly unasked?: Unasked;
}

/** A database that was not asked. */
interface Unasked {
  readonly reason: string;
  /** Its variable is set: it did not answer. */
  readonly unreached: boolean;
}

async function hold(databases: OpenDatabases, settings: Settings, pipeline: Pipeline): Promise<HeldPipeline> {
  const url = settings.env[pipeline.database] ?? pipeline.database;
  const claimed = claimOf(pipeline, url, targetOf(pipeline));
  const unheld = { pipeline, claim: claimed, registered: [], warnings: [], notes: [] };
  try {
    const database = await databases.open(pipeline.database);
    const source = await openSource(databases, settings, pipeline);
    const description = await describePipeline(database, pipeline, source.database);
    const registered = (await ledgerState(database)) === 'current' ? await registeredPipelines(database) : [];
    const { target = targetOf(pipeline), scope } = description;
    const claim = claimOf(pipeline, url, target, scope);
    const own = registered.find(({ name }) => name === pipeline.name);
    const grid = changedGrid(claim, own);
    const idle = registered.length > 0 ? await ofFormer(database, pipeline, registered, target) : undefined;
    return {
      pipeline,
      claim,
      description,
      registered,
      problems: [...description.problems, ...grid.problems],
      warnings: [...description.warnings, ...grid.warnings, ...(idle?.warnings ?? [])],
      notes: idle?.notes ?? [],
      unasked: source.unasked,
    };
  } catch (error) {
    const reason = reasonNotAsked(error);
    if (reason !== undefined) {
      return { ...unheld, problems: [], unasked: { reason, unreached: isNamed(settings, pipeline.database) } };
    }
    return { ...unheld, problems: [problemOf(error, setting('database'))] };
  }
}

/** What is to be said of a `formerly`; undefined where it carries something over, or may. */
async function ofFormer(
  database: Database,
  pipeline: Pipeline,
  registered: readonly RegisteredPipeline[],
  target: string,
): Promise<ReturnType<typeof idleFormer> | undefined> {
  const { name, formerly } = pipeline;
  if (formerly === undefined || registered.some((other) => other.name === formerly)) return undefined;
  if ((await formerRows(database, pipeline, target)) > 0) return undefined;
  return idleFormer(pipeline, registered, await hasLedgerRows(database, name));
}

async function openSource(
  databases: OpenDatabases,
  settings: Settings,
  pipeline: Pipeline,
): Promise<{ readonly database?: Database; readonly unasked?: Unasked }> {
  if (pipeline.kind !== 'sql' || pipeline.source === undefined) return {};
  try {
    return { database: await databases.open(pipeline.source, { readOnly: true }) };
  } catch (error) {
    const reason = reasonNotAsked(error);
    if (reason === undefined) throw error;
    const unreached = isNamed(settings, pipeline.source);
    return { unasked: { reason: `The source was not asked: ${reason}`, unreached } };
  }
}

/** Whether a variable names a database, however wrongly. */
function isNamed(settings: Settings, variable: string): boolean {
  try {
    return databaseUrl(settings, variable) !== '';
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    return false;
  }
}

/** What keeps a database from being asked and says nothing of a pipeline; undefined for all else. */
function reasonNotAsked(error: unknown): string | undefined {
  if (!(error instanceof Failure)) return undefined;
  switch (error.type) {
    case 'DatabaseUnavailable':
    case 'InvalidInput':
    case 'Conflict':
    case 'TimedOut':
      return error.message;
    default:
      return undefined;
  }
}

function checked(
  { file, pipeline, problems: inFile, lineOf }: ExaminedPipeline,
  held: HeldPipeline | undefined,
  all: readonly HeldPipeline[],
  files: readonly ExaminedPipeline[],
): CheckedPipeline {
  const base = {
    name: file.name,
    file: file.shown,
    problems: inFile.map(({ line, message }) => ({ line, type: 'InvalidPipeline' as const, message })).sort(byLine),
    warnings: [],
    notes: [],
    columns: [],
    left: [],
  };
  if (!pipeline || !held) return base;
  const names = new Set(all.map((other) => other.pipeline.name));
  const elsewhere = held.registered
    .filter(({ name }) => !names.has(name))
    .map((registered) => registeredClaim(registered, held.claim.database));
  const others = [...all.map(({ claim }) => claim), ...elsewhere];
  const order = pipeline.after ? afterProblems(pipeline, inOrder(files, held.registered)) : [];
  const found = [
    ...held.problems,
    ...rivals(held.claim, others, pipeline.formerly),
    ...order.map((message) => ({ type: 'InvalidPipeline' as const, message, place: setting('after') })),
  ];
  const problems = found.map(({ type, message, place }) => ({ line: lineOf(place), type, message }));
  const placed = ({ message, place }: PipelineWarning) => ({ line: lineOf(place), message });
  const { columns = [], left = [], deletes, sample } = held.description ?? {};
  return {
    ...base,
    kind: pipeline.kind,
    target: held.claim.target,
    partition: pipeline.partition,
    ...(pipeline.schedule && { schedule: { ...ownLookback(pipeline), ...pipeline.schedule } }),
    problems: [...base.problems, ...problems].sort(byLine),
    warnings: held.warnings.map(placed).sort(byLine),
    notes: held.notes.map(placed),
    unasked: held.unasked?.reason,
    ...(held.unasked && { fileOnly: held.description === undefined, unreached: held.unasked.unreached }),
    columns,
    left,
    deletes,
    sample,
  };
}

function inOrder(files: readonly ExaminedPipeline[], registered: readonly RegisteredPipeline[]): Order {
  return orderOf(
    files.map(({ file, pipeline }) => pipeline ?? { name: file.name }),
    registered,
  );
}

/** What a schedule goes by that does not say otherwise. */
function ownLookback({ lookback }: Pipeline): { readonly lookback?: number } {
  return lookback > 0 ? { lookback } : {};
}

function byLine(a: { readonly line?: number }, b: { readonly line?: number }): number {
  return (a.line ?? 0) - (b.line ?? 0);
}

/** Databases by the variable that names them, each opened once; one that cannot be opened fails each time alike. */
export class OpenDatabases {
  readonly #settings: Settings;
  readonly #opened = new Map<string, Promise<Database>>();

  constructor(settings: Settings) {
    this.#settings = settings;
  }

  /** Throws `InvalidInput` where the variable is not set, `DatabaseUnavailable` where the server cannot be reached. */
  async open(variable: string, options: Pick<DatabaseOptions, 'readOnly'> = {}): Promise<Database> {
    const url = databaseUrl(this.#settings, variable);
    const name = `${options.readOnly ? 'source' : 'target'} ${url}`;
    const opened = this.#opened.get(name) ?? openDatabase(url, { fills: 1, ...options });
    this.#opened.set(name, opened);
    return opened;
  }

  async close(): Promise<void> {
    for (const opened of await Promise.allSettled(this.#opened.values())) {
      if (opened.status === 'fulfilled') await opened.value.close();
    }
  }
}
