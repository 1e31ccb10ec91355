import { fileURLToPath } from 'node:url';

/** A file that is not there: Temporal's settings take that for no profile at all, while an empty one is an error to them. */
const NO_PROFILE = fileURLToPath(new URL('no-temporal-profile.toml', import.meta.url));

/** The variables that name one Temporal server of our own, and keep a person's profiles out. */
export function onlyThisServer(address: string): Record<string, string> {
  return { TEMPORAL_ADDRESS: address, TEMPORAL_CONFIG_FILE: NO_PROFILE };
}
