import { createHash } from 'node:crypto';

/** Characters of a version that is kept as it is. */
const MAX_KEPT = 200;
/** What stands for NULL, as in COPY's text. */
const NULL_VERSION = '\\N';

/**
 * A version as the ledger keeps it: itself where that is short and plain, so that a person can read it; else its hash. NULL is a
 * version of its own, `\N`. Two versions have one text only where they are the same.
 */
export function versionText(version: string | null): string {
  if (version === null) return NULL_VERSION;
  // No ledger's encoding lacks these.
  if (version.length > MAX_KEPT || !/^[ -~]*$/.test(version)) {
    return `\\sha256:${createHash('sha256').update(JSON.stringify(version)).digest('hex')}`;
  }
  return version.startsWith('\\') ? `\\${version}` : version;
}
