import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type Hook, NotTold } from './hook.js';
import { endGroup } from './process-group.js';
import { signature } from './signature.js';

/** Milliseconds that a command may run. */
const END_WITHIN_MS = 60_000;
/** Where a command finds the signature. */
export const SIGNATURE_VARIABLE = 'REPAVE_NOTIFY_SIGNATURE';

/**
 * A hook that runs a command in a shell, with the document on its standard input. Exit code 0 is a yes. What it writes goes
 * nowhere, since it may be anything. It runs in a process group of its own, and nothing of that is left once this has settled:
 * neither of a command that takes too long or whose signal comes, nor what one that has ended leaves in the background.
 */
export function commandHook(
  command: string,
  secret: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
  { withinMs = END_WITHIN_MS } = {},
): Hook {
  return {
    kind: 'command',
    async tell(document, signal) {
      signal.throwIfAborted();
      const child = started(command, {
        ...env,
        ...(secret === undefined ? {} : { [SIGNATURE_VARIABLE]: signature(secret, document) }),
      });
      const late = AbortSignal.timeout(withinMs);
      try {
        // One that reads nothing is as good.
        child.stdin?.on('error', () => undefined).end(document);
        const exit = await once(child, 'exit', { signal: AbortSignal.any([signal, late]) });
        const [code, killed] = exit as [number | null, NodeJS.Signals | null];
        if (code === 0) return;
        throw new NotTold(`The notify command ended with ${code === null ? String(killed) : `exit code ${code}`}.`);
      } catch (error) {
        if (error instanceof NotTold) throw error;
        signal.throwIfAborted();
        if (late.aborted) throw new NotTold(`The notify command had not ended after ${withinMs / 1000} s.`);
        throw notStarted(error);
      } finally {
        if (child.pid !== undefined) await endGroup(child.pid);
      }
    },
  };
}

/** Throws {@link NotTold} for some of what stands in its way; of the rest the process tells as an event. */
function started(command: string, env: NodeJS.ProcessEnv): ChildProcess {
  try {
    const child = spawn('/bin/sh', ['-c', command], { detached: true, stdio: ['pipe', 'ignore', 'ignore'], env });
    // One that nobody listens to would end the worker.
    return child.on('error', () => undefined);
  } catch (error) {
    throw notStarted(error);
  }
}

/** The system's own code alone: a message may hold what the command was given. */
function notStarted(error: unknown): NotTold {
  const code = error instanceof Error && 'code' in error ? String(error.code) : 'for no reason that is known';
  return new NotTold(`The notify command could not be started (${code}).`);
}
