import type { BackfillInput, BackfillResult, Progress } from '../contract.js';
import { cancelLeftOpen } from './demo-left-open.js';
import { type DemoReport, readReport } from './demo-report.js';
import { type DemoServersOptions, PACKAGE, withDemoServers } from './demo-servers.js';

/** What the demo fills: every date of the example. */
export const DEMO_BACKFILL = {
  pipeline: 'sales_summary',
  from: '1997-01-01',
  to: '1998-06-30',
} as const satisfies BackfillInput;

/** Where the demo stands and what it tells, beside what its servers need. */
export interface DemoOptions extends DemoServersOptions {
  /** Called when the backfill begins. */
  readonly onFilling: () => void;
  readonly onProgress: (progress: Progress) => void;
  /** Called when the backfill has ended, before anything is stopped. */
  readonly onFilled: () => void;
}

/** What the demo has come to: of its backfill, and of its tables once that has ended. */
export interface DemoOutcome {
  readonly result: BackfillResult;
  readonly report: DemoReport;
}

/**
 * Brings up servers and a worker of its own, loads the example, fills every date of it and stops everything again.
 * Resolves to what was filled, or to the signal that cut it short. Throws what went wrong; nothing is left running then
 * either. Its state stays, and a second run goes over it again.
 */
export async function runDemo(
  options: DemoOptions,
): Promise<{ readonly value: DemoOutcome } | { readonly signal: NodeJS.Signals }> {
  return withDemoServers(options, async ({ database, startWorker, withClient }) => {
    await startWorker(PACKAGE);
    return withClient(async (repave) => {
      await cancelLeftOpen(repave, database, DEMO_BACKFILL, options.say);
      options.onFilling();
      const backfill = await repave.backfill(DEMO_BACKFILL);
      if (backfill.joined) options.say('A backfill that an earlier run left unfinished goes on.');
      for await (const progress of backfill.follow()) options.onProgress(progress);
      options.onFilled();
      return { result: await backfill.result(), report: await readReport(database) };
    });
  });
}
