import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { Notice } from '../contract.js';
import { Failure } from '../failure.js';
import { type Hook, NotTold } from '../telling/hook.js';
import { notifyHooks } from '../telling/hooks.js';
import { temporalServer } from '../temporal/temporal-server.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporalServer } from './command.js';
import { EXIT, type ExitCode } from './exit.js';

/** `repave notify`: tells the notify hooks of an event that is none, once and at once, and says whether they have taken it. */
export function registerNotify(program: Command): void {
  const command = addCommand(program, 'notify', {
    summary: 'try the notify hooks: tell them of an event called test',
    examples: ['REPAVE_NOTIFY_URL=https://hooks.example/repave repave notify', 'repave notify --json'],
    after: 'Exits with 0 where each has taken it, 1 where one has not. Workers tell of what happens by themselves.',
  });
  withTemporalServer(command).action(runs(notify));
}

/** How one hook has ended. */
interface Tried {
  readonly hook: Hook['kind'];
  readonly taken: boolean;
  readonly message?: string;
}

async function notify(
  { settings, output }: Context,
  _given: readonly unknown[],
  _options: CommonOptions,
): Promise<ExitCode> {
  const hooks = notifyHooks(settings);
  if (hooks.length === 0) {
    throw new Failure(
      'InvalidInput',
      'There is no notify hook to try: set REPAVE_NOTIFY_URL or REPAVE_NOTIFY_COMMAND as the workers have it.',
    );
  }
  const notice: Notice = {
    id: `test/${randomUUID()}`,
    event: 'test',
    at: new Date().toISOString(),
    namespace: temporalServer(settings).namespace,
    pipeline: 'test',
  };
  const tried = await Promise.all(hooks.map((hook) => tryHook(hook, JSON.stringify(notice))));
  output.document({ id: notice.id, hooks: tried });
  for (const { hook, taken, message } of tried) {
    output.result(
      taken ? `${output.colors.green('✓')} the ${hook} has taken it` : `${output.colors.red('✗')} ${message}`,
    );
  }
  return tried.every(({ taken }) => taken) ? EXIT.done : EXIT.notWhole;
}

async function tryHook(hook: Hook, document: string): Promise<Tried> {
  try {
    await hook.tell(document, new AbortController().signal);
    return { hook: hook.kind, taken: true };
  } catch (error) {
    if (!(error instanceof NotTold)) throw error;
    return { hook: hook.kind, taken: false, message: error.message };
  }
}
