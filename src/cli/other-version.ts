import { relative } from 'node:path';
import { Failure } from '../failure.js';
import { loadPipeline } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { databaseUrl, type Settings } from '../settings.js';
import { type RegisteredPipeline, registeredPipelines } from '../warehouse/ledger.js';
import { pipelinesFolder, withDatabaseAt } from './database.js';
import { instant } from './format.js';

/** What to say where workers fill by another version than the file here; undefined where they have this one. */
export function otherVersion(
  file: Pick<Pipeline, 'fingerprint' | 'start' | 'file'>,
  registered: Pick<RegisteredPipeline, 'name' | 'fingerprint' | 'start' | 'registeredAt'>,
): string | undefined {
  const start = registered.start ?? undefined;
  if (registered.fingerprint === file.fingerprint && start === file.start) return undefined;
  const what =
    registered.fingerprint === file.fingerprint
      ? `another start (${start ?? 'none'}) of ${registered.name}`
      : `another version of ${registered.name}`;
  return (
    `Workers have ${what} than ${relative(process.cwd(), file.file)} here, registered at ` +
    `${instant(registered.registeredAt)}; they fill by theirs. Start them again to use this file (\`repave dev\` does so by itself).`
  );
}

/**
 * {@link otherVersion} of a pipeline by name, where its file is at hand and its ledger answers; undefined elsewhere: whoever
 * starts a backfill needs neither.
 */
export async function otherVersionOf(settings: Settings, name: string): Promise<string | undefined> {
  try {
    const file = await loadPipeline(pipelinesFolder(settings), name);
    const registered = await withDatabaseAt(databaseUrl(settings, file.database), registeredPipelines);
    const own = registered.find((pipeline) => pipeline.name === name);
    return own && otherVersion(file, own);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}
