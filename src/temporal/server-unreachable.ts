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
