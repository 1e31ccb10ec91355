import type { DemoOutcome } from '../dev/demo.js';
import { EXIT, type ExitCode } from './exit.js';
import { isBackfillFailed } from './follow.js';
import type { Output } from './output.js';

/** Whether every figure is what a fresh count of the purchases gives, and the ledger says the same. */
export function isWholeDemo({ result, report }: DemoOutcome): boolean {
  return result.failed === 0 && report.differing === 0 && report.ledger.differing === 0 && report.ledger.failed === 0;
}

/** Tells that a demo has failed. Throws what is no failure of its backfill. */
export function demoFailed(error: unknown, output: Output): ExitCode {
  output.say('The demo failed. Nothing of it runs any more.');
  if (!isBackfillFailed(error)) throw error;
  output.say(`${error.type}: ${error.message}`);
  return EXIT.notWhole;
}
