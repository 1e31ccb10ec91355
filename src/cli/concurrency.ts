import { type Command, InvalidArgumentError } from 'commander';
import { MAX_CONCURRENCY } from '../contract.js';
import { addCommand, type CommonOptions, runs, withTemporal } from './command.js';
import { wholeNumber } from './keys.js';
import { resumeIt, steer } from './steer.js';

/** `repave concurrency`: how many partitions a backfill fills at once, from now on. */
export function registerConcurrency(program: Command): void {
  const command = addCommand(program, 'concurrency <backfill>', {
    summary: 'fill fewer or more partitions at once, from now on',
    examples: [
      'repave concurrency sales_summary 1',
      'repave concurrency backfill/sales_summary/1997-01-01..1997-01-31 16',
    ],
    after:
      "A backfill's id, or a pipeline's name where one backfill of it runs. What runs beyond the new number goes on to its end.",
  });
  withTemporal(command)
    .argument('<n>', `partitions at once, 1 to ${MAX_CONCURRENCY}`, lanes)
    .action(
      runs<readonly [string, number], CommonOptions>(async (context, [what, n]) =>
        steer(context, what, {
          lever: 'setConcurrency',
          command: (id) => `repave concurrency ${id} ${n}`,
          pull: (handle) => handle.setConcurrency(n),
          inForce: (id, { concurrency }) =>
            `${id} fills ${concurrency} at once now; what runs beyond that goes on to its end.`,
          next: (id, { paused }) => paused && resumeIt(id),
          later: (id) => `${id} fills ${n} at once`,
        }),
      ),
    );
}

function lanes(text: string): number {
  const n = wholeNumber(text);
  if (n < 1 || n > MAX_CONCURRENCY) throw new InvalidArgumentError(`Expected 1 to ${MAX_CONCURRENCY}.`);
  return n;
}
