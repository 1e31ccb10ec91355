import type { Command } from 'commander';
import { createLog } from '../telemetry/log.js';
import { addCommand, type CommonOptions, type Context, runs, withTemporal } from './command.js';
import { EXIT, type ExitCode } from './exit.js';

/** `repave worker`: the process you deploy. Runs until it is told to stop, and then lets its fills end. */
export function registerWorker(program: Command): void {
  const command = addCommand(program, 'worker', {
    summary: 'run a worker: the process that fills',
    examples: ['repave worker', 'REPAVE_FILLS=16 repave worker --task-queue nightly'],
    after:
      'Ctrl-C or SIGTERM: it takes nothing new, and its fills have REPAVE_SHUTDOWN_GRACE seconds to end\n' +
      'before they are rolled back and go on elsewhere. A second Ctrl-C ends it at once, which is safe too.',
  });
  withTemporal(command).action(runs(worker));
}

async function worker({ settings }: Context, _given: readonly unknown[], _options: CommonOptions): Promise<ExitCode> {
  // Loaded here alone: the worker brings in the Temporal SDK's native part, which no other command needs.
  const { handleStrayErrors, runWorker, stopOnSignals } = await import('../worker.js');
  const log = createLog(settings.env.REPAVE_LOG_LEVEL || 'info');
  handleStrayErrors(log);
  await runWorker(settings, stopOnSignals(log), log);
  log.info('Worker has stopped');
  return EXIT.done;
}
