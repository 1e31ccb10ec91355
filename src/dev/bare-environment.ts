/** Variables of the environment that name servers, accounts or settings which a server or worker of ours must not see. */
const OTHERS = /^(PG|TEMPORAL_|REPAVE_|DATABASE_URL$)/;

/** The environment without anything that names a server of somebody else's, with `extra` laid over it. */
export function bareEnvironment(
  extra: Readonly<Record<string, string>> = {},
  env: Readonly<Record<string, string | undefined>> = process.env,
): Record<string, string> {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && !OTHERS.test(entry[0]),
  );
  return { ...Object.fromEntries(kept), ...extra };
}
