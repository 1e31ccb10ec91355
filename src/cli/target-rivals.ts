import { didYouMean } from '../pipeline/nearest-name.js';
import type { Pipeline, Scope } from '../pipeline/pipeline.js';
import type { Place } from '../pipeline/place.js';
import type { RegisteredPipeline } from '../warehouse/ledger.js';
import { type PipelineProblem, type PipelineWarning, setting } from '../warehouse/pipeline-problem.js';
import { describeScope, disjointScopes } from '../warehouse/scope.js';

/** A pipeline's claim on a table, as its file or the ledger says it. */
export interface Claim {
  readonly name: string;
  /** The database that holds the table, as far as it can be told apart. */
  readonly database: string;
  readonly target: string;
  readonly column: string;
  readonly by: string;
  readonly zone: string;
  readonly scope: Scope;
  /** Of the ledger, and of no file. */
  readonly registered?: boolean;
}

/** What a file claims; the target and scope as the database says them, where it could be asked. */
export function claimOf(
  pipeline: Pipeline,
  database: string,
  target: string,
  scope: Scope = pipeline.scope ?? {},
): Claim {
  const { column, by, zone } = pipeline.partition;
  return { name: pipeline.name, database, target, column, by, zone, scope };
}

/** A pipeline of a ledger that no file of the project has. */
export function registeredClaim(registered: RegisteredPipeline, database: string): Claim {
  const { name, target, column, by, zone, scope } = registered;
  return { name, database, target, column, by, zone, scope, registered: true };
}

/** Rivals that one sentence names before it only counts them. */
const NAMED = 5;

/**
 * Why a pipeline and the others on its table are in each other's way: one sentence for all that are so in the same way. Workers
 * refuse the second of two that cut it otherwise, or whose scopes may share a row.
 */
export function rivals(own: Claim, others: readonly Claim[], formerly: string | undefined): PipelineProblem[] {
  const ways = new Map<string, Rival[]>();
  for (const other of others) {
    if (other.name === own.name || other.database !== own.database || other.target !== own.target) continue;
    if (other.registered && other.name === formerly) continue;
    const rival = rivalry(own, other);
    if (!rival) continue;
    const way = `${rival.way} ${other.registered ?? false}`;
    ways.set(way, [...(ways.get(way) ?? []), rival]);
  }
  return [...ways.values()].flatMap((alike) => rivalProblem(own, alike) ?? []);
}

/** One of the others in a pipeline's way. */
interface Rival {
  readonly other: Claim;
  readonly way: 'grid' | 'scope' | 'target';
  /** What it says otherwise, in words. */
  readonly says: string;
  readonly place: Place;
}

function rivalry(own: Claim, other: Claim): Rival | undefined {
  const differences = gridDifferences(own, other);
  if (differences.length > 0) {
    const says = differences.map(({ text }) => text).join(', ');
    return { other, way: 'grid', says, place: setting('partition', differences[0]?.setting ?? 'column') };
  }
  if (disjointScopes(own.scope, other.scope)) return undefined;
  const scoped = Object.keys(own.scope).length > 0 || Object.keys(other.scope).length > 0;
  if (!scoped) return { other, way: 'target', says: '', place: setting('target') };
  return { other, way: 'scope', says: describeScope(other.scope), place: setting('scope') };
}

function rivalProblem(own: Claim, rivals: readonly Rival[]): PipelineProblem | undefined {
  const [first] = rivals;
  if (!first) return undefined;
  const names = rivals.map(({ other }) => other.name);
  const who = `${listed(names)}${first.other.registered ? ', by the ledger,' : ''} too`;
  const message = `${own.target} is the target of ${who}${reasonOf(own, rivals, first)}${first.other.registered ? whereGone(names) : ''}`;
  return { type: 'InvalidPipeline', message, place: first.place };
}

function reasonOf(own: Claim, rivals: readonly Rival[], { way, says }: Rival): string {
  const alike = rivals.every((rival) => rival.says === says);
  const each = rivals.slice(0, NAMED).map(({ other, says: text }) => `${text} (${other.name})`);
  const all = alike ? says : `${each.join('; ')}${rivals.length > NAMED ? '; …' : ''}`;
  switch (way) {
    case 'grid':
      return `, which ${rivals.length > 1 ? 'cut' : 'cuts'} it into other partitions: ${all}. Pipelines of one target need the same ones.`;
    case 'scope':
      return `: ${describeScope(own.scope)} here and ${all} there may be of one row. Give ${rivals.length > 1 ? 'each' : 'both'} a scope on one column, with different values.`;
    case 'target':
      return `: ${rivals.length > 1 ? 'they' : 'two pipelines'} would overwrite each other. Give each a \`scope\` of its own, or a table.`;
    default:
      return way satisfies never;
  }
}

function whereGone(names: readonly string[]): string {
  const [name] = names;
  if (names.length === 1) {
    return ` Where ${name} is gone or renamed: say \`formerly: ${name}\`, or DELETE FROM repave.pipeline WHERE name = '${name}'.`;
  }
  const gone = names.map((each) => `'${each}'`).join(', ');
  return ` Where this is one of them, renamed: say \`formerly\` with its name. Those that are gone: DELETE FROM repave.pipeline WHERE name IN (${gone}).`;
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, NAMED);
  const more = names.length - shown.length;
  if (more > 0) return `${shown.join(', ')} and ${more} more`;
  return shown.length > 1 ? `${shown.slice(0, -1).join(', ')} and ${shown.at(-1)}` : (shown[0] ?? '');
}

interface Difference {
  readonly setting: 'zone' | 'by' | 'column';
  readonly text: string;
}

function gridDifferences(own: Omit<Claim, 'name'>, other: Pick<Claim, 'zone' | 'by' | 'column'>): Difference[] {
  return (['zone', 'by', 'column'] as const)
    .filter((name) => own[name] !== other[name])
    .map((name) => ({ setting: name, text: `${name} is ${own[name]} here and ${other[name]} there` }));
}

/** What it means that a file cuts its table otherwise than workers have registered it: a problem until they have filled it anew. */
export function changedGrid(
  own: Claim,
  registered: RegisteredPipeline | undefined,
): { readonly problems: readonly PipelineProblem[]; readonly warnings: readonly PipelineWarning[] } {
  if (registered?.target !== own.target) return { problems: [], warnings: [] };
  const differences = gridDifferences(own, registered);
  const [first] = differences;
  if (first) {
    const changes = differences.map(({ setting: name }) => `${name} from ${registered[name]} to ${own[name]}`);
    const message =
      `The ledger has ${own.name} by other partitions; this file changes ${changes.join(', ')}. Then each partition has another window${first.setting === 'by' ? ' and another key' : ''}: ` +
      'the first fill of a new one deletes parts of its neighbours’ old rows, and what the ledger says of old keys no longer tells what the table holds. ' +
      `If that is meant: start workers with this file (they wait for the target’s running fills), then \`repave backfill ${own.name} --only missing,outdated\` at once, so that every partition is filled anew. Else take the change back.`;
    return {
      problems: [{ type: 'InvalidPipeline', message, place: setting('partition', first.setting) }],
      warnings: [],
    };
  }
  if (sameScope(own.scope, registered.scope)) return { problems: [], warnings: [] };
  const message =
    `The ledger has ${own.name} with ${describeScope(registered.scope)}; this file says ${describeScope(own.scope)}. Its partitions are outdated then: ` +
    `fills replace rows of the new scope, and those of the old one stay as they are until somebody deletes them. Fill it anew with \`repave backfill ${own.name} --only outdated\`.`;
  return { problems: [], warnings: [{ message, place: setting('scope') }] };
}

function sameScope(a: Scope, b: Scope): boolean {
  return JSON.stringify(Object.entries(a).sort()) === JSON.stringify(Object.entries(b).sort());
}

/** What is to be said of a `formerly` whose name the ledger does not have; `own` says whether it has rows of the pipeline itself. */
export function idleFormer(
  { name, formerly: former = '' }: Pick<Pipeline, 'name' | 'formerly'>,
  registered: readonly RegisteredPipeline[],
  own: boolean,
): Idle {
  const place = setting('formerly');
  if (own) {
    const message = `The ledger has rows of ${name} and no pipeline ${former}: that was carried over already, or ${name} always had a ledger of its own. \`formerly\` may go.`;
    return { notes: [{ message, place }], warnings: [] };
  }
  const near = didYouMean(
    former,
    registered.map((other) => other.name),
  );
  const message =
    `The ledger has no pipeline ${former}, and no rows of ${name}: nothing is carried over. ` +
    `Either the name is misspelt.${near} Or it was carried over already, without a row: then \`formerly\` may go.`;
  return { notes: [], warnings: [{ message, place }] };
}

interface Idle {
  /** What needs nobody's hand. */
  readonly notes: readonly PipelineWarning[];
  readonly warnings: readonly PipelineWarning[];
}
