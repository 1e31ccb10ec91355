import { didYouMean } from './nearest-name.js';

/** A pipeline in the graph of what comes after what. */
export interface Ordered {
  readonly name: string;
  /** Absent: it comes after none. */
  readonly after?: readonly string[];
  /** The environment variable of its database. Absent: not known, or the ledger's own. */
  readonly database?: string;
  /** The name it had before it was renamed, which is no pipeline's any more. */
  readonly formerly?: string;
}

/**
 * What comes after what: as files say, and of pipelines that are in none of them, as the ledger does. A name that a file's pipeline
 * had before it was renamed is none any more, whether or not the ledger has heard of that.
 */
export function orderOf(files: readonly Ordered[], registered: readonly Pick<Ordered, 'name' | 'after'>[]): Order {
  const former = new Set(files.map(({ formerly }) => formerly));
  const others = registered.filter(({ name }) => !former.has(name)).map(({ name, after }) => ({ name, after }));
  return new Map<string, Ordered>([...others, ...files].map((each) => [each.name, each]));
}

/** Pipelines by name. */
export type Order = ReadonlyMap<string, Ordered>;

/**
 * What is wrong with a pipeline's `after`, one sentence each: names that are none, its own, those whose targets are in another
 * database, and a circle, which is named as a whole. Empty where all is right.
 */
export function afterProblems(pipeline: Ordered, all: Order): string[] {
  const problems = (pipeline.after ?? []).flatMap((name) => wrongName(pipeline, name, all) ?? []);
  const circle = circleOf(pipeline.name, all);
  if (!circle || circle.length === 2) return problems;
  return [...problems, circleProblem(circle)];
}

/** What is said of a circle. */
export function circleProblem(circle: readonly string[]): string {
  return `\`after\` goes in a circle, in which none could be the first to be filled: ${circle.join(' comes after ')}. Take one of them out of the other’s \`after\`.`;
}

function wrongName(pipeline: Ordered, name: string, all: Order): string | undefined {
  if (name === pipeline.name) return '`after` names the pipeline itself: expected others, which are filled before it.';
  const other = all.get(name);
  if (!other) {
    const renamed = [...all.values()].find(({ formerly }) => formerly === name);
    if (renamed) return `\`after\` names ${name}, which is called ${renamed.name} now: expected that.`;
    const names = [...all.keys()].filter((known) => known !== pipeline.name);
    const near = didYouMean(name, names);
    const there = names.length === 0 ? ' There is no other.' : ` There are: ${names.sort().slice(0, 20).join(', ')}.`;
    return `\`after\` names ${name}, and there is no such pipeline.${near || there}`;
  }
  const { database } = pipeline;
  if (database === undefined || other.database === undefined || database === other.database) return undefined;
  return (
    `\`after\` names ${name}, whose target is in another database (${other.database}; this one’s is in ${database}), and no ledger has both: ` +
    'expected pipelines of the same `database`. What this one waits for elsewhere, a `ready` can ask.'
  );
}

/** The shortest way from a pipeline over what it comes after back to itself, both ends named; undefined where it is in no circle. */
export function circleOf(name: string, all: Order): string[] | undefined {
  const from = new Map<string, string>();
  const queue = [name];
  for (const at of queue) {
    for (const next of all.get(at)?.after ?? []) {
      if (next === name) {
        const way = [name];
        for (let step: string | undefined = at; step !== undefined && step !== name; step = from.get(step))
          way.unshift(step);
        return [name, ...way];
      }
      if (from.has(next)) continue;
      from.set(next, at);
      queue.push(next);
    }
  }
  return undefined;
}

/**
 * The pipelines that come before some, these among them, directly or through others, each behind all that come after it: as far
 * as they are in no circle. Names that are none are in it too.
 */
export function upstreamOf(names: readonly string[], all: Order): string[] {
  const ordered: string[] = [];
  const seen = new Set<string>();
  const visit = (name: string): void => {
    if (seen.has(name)) return;
    seen.add(name);
    for (const upstream of all.get(name)?.after ?? []) visit(upstream);
    ordered.push(name);
  };
  for (const name of names) visit(name);
  return ordered.reverse();
}

/**
 * The pipelines that come after one, directly or through others, each behind all that it comes after itself, and always in
 * the same order.
 */
export function downstreamOf(name: string, all: Order): string[] {
  const ordered: string[] = [];
  const seen = new Set([name]);
  const dependents = new Set<string>();
  for (let found = [name]; found.length > 0;) {
    const next = [...all.values()].filter(({ after = [], name: other }) => {
      return other !== name && !dependents.has(other) && after.some((upstream) => found.includes(upstream));
    });
    found = next.map((pipeline) => pipeline.name);
    for (const other of found) dependents.add(other);
  }
  const visit = (at: string): void => {
    if (seen.has(at) || !dependents.has(at)) return;
    seen.add(at);
    for (const upstream of [...(all.get(at)?.after ?? [])].sort()) visit(upstream);
    ordered.push(at);
  };
  for (const dependent of [...dependents].sort()) visit(dependent);
  return ordered;
}
