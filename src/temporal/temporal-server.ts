import { loadClientConnectConfig, type ClientConnectConfig } from '@temporalio/envconfig';
import { Failure } from '../failure.js';
import type { Settings } from '../settings.js';

export interface TemporalServer {
  /** For `Connection.connect` and `NativeConnection.connect` alike. The API key in it is a secret. */
  readonly connectionOptions: ClientConnectConfig['connectionOptions'];
  readonly namespace: string;
  /** Host and port, to be named in messages. */
  readonly address: string;
  /** Whether somebody has named it; else it is the default address, where there may be none. */
  readonly named: boolean;
}

const DEFAULT_ADDRESS = 'localhost:7233';
const DEFAULT_NAMESPACE = 'default';

/**
 * The Temporal server that the environment names by Temporal's own variables and profiles; where it names none, a running
 * `repave dev`'s, and then what the default profile says. Throws `InvalidInput` for a profile that cannot be read.
 */
export function temporalServer(settings: Pick<Settings, 'env' | 'dev'>): TemporalServer {
  const { env, dev } = settings;
  const namedByEnv = env.TEMPORAL_ADDRESS || env.TEMPORAL_PROFILE || env.TEMPORAL_CONFIG_FILE;
  if (dev && !namedByEnv) {
    const address = dev.temporalAddress;
    return {
      connectionOptions: { address },
      namespace: env.TEMPORAL_NAMESPACE || DEFAULT_NAMESPACE,
      address,
      named: true,
    };
  }
  let config: ClientConnectConfig;
  try {
    config = loadClientConnectConfig({ overrideEnvVars: present(env) });
  } catch (error) {
    // The parser's message quotes the file, and the file may hold a key.
    const reason =
      error instanceof Error && error.message.startsWith('Profile ') ? error.message : 'the file is not as expected';
    throw new Failure(
      'InvalidInput',
      `Temporal's settings cannot be read: ${reason}. See TEMPORAL_PROFILE and TEMPORAL_CONFIG_FILE.`,
    );
  }
  return {
    connectionOptions: config.connectionOptions,
    namespace: config.namespace ?? DEFAULT_NAMESPACE,
    address: config.connectionOptions.address ?? DEFAULT_ADDRESS,
    named: config.connectionOptions.address !== undefined,
  };
}

function present(env: Settings['env']): Record<string, string> {
  const entries = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '',
  );
  return Object.fromEntries(entries);
}
