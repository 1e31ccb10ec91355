import type { Command } from 'commander';
import { addCommand, runs, withTemporal } from './command.js';
import { EXIT } from './exit.js';

/** `repave worker`: the process you deploy. Runs until it is told to stop, and then lets its fills end. */
export function registerWorker(program: Command): void {
  const command = addCommand(program, 'worker', {
    summary: 'run a worker: the process that fills',
    examples: ['repave worker', 'REPAVE_FILLS=16 repave worker --task-queue nightly'],
    after:
      'Ctrl-C or SIGTERM: it takes nothing new and its fills have REPAVE_SHUTDOWN_GRACE seconds to end, or are rolled back\n' +
      'and go on elsewhere. A second Ctrl-C ends it at once, which is safe too.',
  });
  withTemporal(command).action(
    runs(async ({ settings }) => {
      // Loaded here alone: the worker brings in the Temporal SDK's native part, which no other command needs.
      const { runWorker } = await import('../worker.js');
      const stop = new AbortController();
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort());
      await runWorker(settings, stop.signal);
      return EXIT.done;
    }),
  );
}
