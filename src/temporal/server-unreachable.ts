/** A server that is no database could not be reached. Its message names the server and says what to do. */
export class ServerUnreachable extends Error {
  override readonly name = 'ServerUnreachable';
}

/** Says of a Temporal server that it did not answer, and what to look at. */
export function temporalUnreachable(address: string): ServerUnreachable {
  return new ServerUnreachable(
    `No Temporal server answers at ${address}. Start one (\`repave dev\`), or set TEMPORAL_ADDRESS or TEMPORAL_PROFILE to yours.`,
  );
}

/** Says of a Temporal server that it was not waited for: it may be slow, or away. */
export function temporalLate(address: string, patienceMs: number): ServerUnreachable {
  return new ServerUnreachable(`Temporal at ${address} did not answer within ${patienceMs / 1000} s.`);
}
