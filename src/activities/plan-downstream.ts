import { Failure } from '../failure.js';
import { type DownstreamPlan, planDownstream as planIn } from '../plan/downstream.js';
import type { Plan } from '../plan/resolve-plan.js';
import { unregisteredDownstream } from '../plan/unregistered.js';
import type { Database } from '../warehouse/database.js';
import { type RegisteredPipeline, registeredPipelines } from '../warehouse/ledger.js';
import type { ActivityDeps } from './activity-deps.js';
import { answering } from './answering.js';
import type { DownstreamPipeline, PlanDownstreamRequest, PlannedDownstream } from './messages.js';
import { placeOfRun } from './place.js';
import { withPlannedDatabase } from './planned-database.js';

/** Says what depends on the partitions of a backfill, in the order it is to be filled. Needs the run's database, and no pipeline's file. */
export function planDownstream(deps: ActivityDeps): (request: PlanDownstreamRequest) => Promise<PlannedDownstream> {
  return answering('attempts', async (request) =>
    withPlannedDatabase(deps, placeOfRun(deps, request), request.ledger, (database) =>
      downstreamOfPlan(deps, database, request, { assumed: false }),
    ),
  );
}

/**
 * The same of any plan; `assumed`: as if it were filled. What this worker could not name in the ledger before is tried again, and
 * is in the answer, with the reason, where it still cannot.
 */
export async function downstreamOfPlan(
  deps: Pick<ActivityDeps, 'unregistered' | 'registerAgain'>,
  database: Database,
  { pipeline, first, last }: Pick<Plan, 'pipeline' | 'first' | 'last'>,
  { assumed }: { readonly assumed: boolean },
): Promise<PlannedDownstream> {
  if (first === undefined || last === undefined) return { pipelines: [], notes: [] };
  const unserved = await unservedDownstream(deps, pipeline, await registeredPipelines(database));
  const registered = await registeredPipelines(database);
  const plans = await planIn(database, registered, pipeline, { from: first, to: last }, { now: new Date(), assumed });
  // First: what comes after one of them cannot be filled either.
  return { pipelines: [...unserved, ...plans.map(request)], notes: plans.flatMap(({ notes }) => notes) };
}

/** Of what depends on a pipeline, all that cannot be registered even now. */
async function unservedDownstream(
  { unregistered, registerAgain }: Pick<ActivityDeps, 'unregistered' | 'registerAgain'>,
  root: string,
  registered: readonly RegisteredPipeline[],
): Promise<DownstreamPipeline[]> {
  const unserved: DownstreamPipeline[] = [];
  for (const { name, after = [] } of unregisteredDownstream(root, registered, [...unregistered.values()])) {
    try {
      await registerAgain(name);
    } catch (error) {
      if (!(error instanceof Failure) || !(error.final || error.type === 'Conflict')) throw error;
      unserved.push({ pipeline: name, after, total: 0, unserved: `No worker serves it: ${error.message}` });
    }
  }
  return unserved;
}

function request({ pipeline, after, total, ranges }: DownstreamPlan): DownstreamPipeline {
  return {
    pipeline,
    after,
    total,
    first: ranges[0]?.from,
    last: ranges.at(-1)?.to,
    ...(ranges.length > 1 ? { keys: ranges.map(({ from, to }) => (from === to ? from : `${from}..${to}`)) } : {}),
  };
}
