import { Failure } from '../failure.js';
import { loadPipelines } from '../pipeline/load.js';
import { databaseUrl, type Settings } from '../settings.js';
import type { BackfillRow } from '../warehouse/backfills.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId } from '../warehouse/ledger.js';
import { pipelinesFolder, withDatabaseAt } from './database.js';

/**
 * Asks every ledger of a project, each once: `DATABASE_URL`'s, and those that its pipeline files name. Throws what opening
 * one throws, and `InvalidInput` where none is named, or one is missing, older or newer.
 */
export async function askLedgers<Answer>(
  settings: Settings,
  ask: (database: Database) => Promise<Answer>,
): Promise<Answer[]> {
  const answers = new Map<string, Answer>();
  for (const url of await ledgerUrls(settings)) {
    await withDatabaseAt(url, async (database) => {
      const id = await ledgerId(database);
      // Two variables may name one database.
      if (!answers.has(id)) answers.set(id, await ask(database));
    });
  }
  return [...answers.values()];
}

/** Backfills of several ledgers in one order. */
export function newestFirst<Row extends BackfillRow>(rows: readonly Row[]): Row[] {
  return [...rows].sort((a, b) => b.startedAt.getTime() - a.startedAt.getTime());
}

/** The URLs of a project's ledgers, each once. Throws `InvalidInput` where none is named. */
export async function ledgerUrls(settings: Settings): Promise<Set<string>> {
  const variables = await pipelineVariables(settings);
  const { dev, env } = settings;
  if (variables.size === 0 || env.DATABASE_URL || dev) variables.add('DATABASE_URL');
  return new Set([...variables].map((variable) => databaseUrl(settings, variable)));
}

/** Whoever only looks may have no pipeline files at hand. */
async function pipelineVariables(settings: Settings): Promise<Set<string>> {
  try {
    const { pipelines } = await loadPipelines(pipelinesFolder(settings));
    return new Set([...pipelines.values()].map(({ database }) => database));
  } catch (error) {
    if (error instanceof Failure) return new Set();
    throw error;
  }
}
