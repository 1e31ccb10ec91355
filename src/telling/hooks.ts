import { Failure } from '../failure.js';
import type { Settings } from '../settings.js';
import { commandHook } from './command-hook.js';
import type { Hook } from './hook.js';
import { urlHook } from './url-hook.js';

/**
 * The notify hooks that the settings name: none, a URL, a command, or both. Throws `InvalidInput` for a URL that is none, and
 * for a secret that signs nothing; what the variables hold is never told.
 */
export function notifyHooks({ notify, env }: Pick<Settings, 'notify' | 'env'>): readonly Hook[] {
  const { url, command, secret } = notify;
  const hooks = [
    ...(url === undefined ? [] : [urlHook(judgedUrl(url), secret)]),
    ...(command === undefined ? [] : [commandHook(command, secret, env)]),
  ];
  if (secret !== undefined && hooks.length === 0) {
    throw new Failure(
      'InvalidInput',
      'REPAVE_NOTIFY_SECRET is set, and neither REPAVE_NOTIFY_URL nor REPAVE_NOTIFY_COMMAND: expected what it is to sign for.',
    );
  }
  return hooks;
}

function judgedUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if ((url?.protocol === 'https:' || url?.protocol === 'http:') && hasReadableCredentials(url)) return url;
  throw new Failure(
    'InvalidInput',
    'REPAVE_NOTIFY_URL is not a URL of https or http: expected one such as https://hooks.example/repave.',
  );
}

function hasReadableCredentials({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}
