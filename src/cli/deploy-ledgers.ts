import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Settings } from '../settings.js';
import { ledgerId } from '../warehouse/ledger.js';
import { withDatabase } from './database.js';

/** The ledgers of a project, by the variables that name their databases. */
export interface ProjectLedgers {
  readonly ids: ReadonlyMap<string, string>;
  /** Why each of the others was not asked: its database is away, or not set up here. */
  readonly unasked: ReadonlyMap<string, string>;
}

/** Asks each ledger of a project for its id: `DATABASE_URL`'s, and those that its pipelines name. */
export async function projectLedgers(
  settings: Settings,
  pipelines: ReadonlyMap<string, Pick<Pipeline, 'database'>>,
): Promise<ProjectLedgers> {
  const variables = new Set([...pipelines.values()].map(({ database }) => database));
  if (settings.env.DATABASE_URL || settings.dev) variables.add('DATABASE_URL');
  const ids = new Map<string, string>();
  const unasked = new Map<string, string>();
  await Promise.all(
    [...variables].map(async (variable) => {
      try {
        ids.set(variable, await withDatabase(settings, variable, ledgerId));
      } catch (error) {
        if (!(error instanceof Failure)) throw error;
        unasked.set(variable, error.message);
      }
    }),
  );
  return { ids, unasked };
}
