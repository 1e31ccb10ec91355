import type { Owner } from './fill-request.js';

/** PostgreSQL cuts an application_name here without a word. */
const MAX_NAME = 63;

/** The application_name of an owner's backends, up to the fence. */
export function ownerPrefix(owner: Owner): string {
  return `repave ${owner.run}/${owner.activity} `;
}

/**
 * The application_name of one attempt's backend: by it another worker finds and ends it. Holds run, activity and fence only,
 * since it is short and others read it.
 */
export function attemptName(owner: Owner, fence: number): string {
  const name = `${ownerPrefix(owner)}${fence}`;
  if (name.length > MAX_NAME) throw new Error(`The application_name ${name} is longer than ${MAX_NAME} bytes`);
  return name;
}

/** Matches an attempt's application_name in SQL: run, then fence. */
export const ATTEMPT_PATTERN = '^repave ([^/ ]+)/[^ ]+ ([0-9]{1,18})$';

/** An attempt's backend by its application_name; undefined for any other name. */
export function parseAttemptName(
  name: string,
): { readonly run: string; readonly activity: string; readonly fence: string } | undefined {
  const [, run, activity, fence] = /^repave ([^/ ]+)\/([^ ]+) ([0-9]{1,18})$/.exec(name) ?? [];
  return run && activity && fence ? { run, activity, fence } : undefined;
}
