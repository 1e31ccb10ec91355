import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import type { Steered } from '../../src/contract.js';
import type { Harness } from './harness.js';
import { gate, type Script, type Scripted } from './scripted.js';

/** A backfill that is cancelled while the ledger is told its end for the first time; `make` makes it of a script. */
export async function cancelledWhileEnding<Made extends Scripted>(
  harness: Harness,
  make: (script: Script) => Made,
): Promise<[WorkflowHandleWithFirstExecutionRunId, Made]> {
  const [ending, written] = [gate(), gate()];
  const calls = make({
    control: {
      endBackfill: async () => {
        ending.open();
        await written.opened;
        return undefined;
      },
    },
  });
  const handle = await harness.backfill(calls);
  await ending.opened;
  await handle.cancel();
  // An update is answered by a task that has the cancel: the next one has it before the activity's end.
  await handle.executeUpdate<Steered, []>('resume');
  written.open();
  return [handle, calls];
}
