'use strict';
const { reporters } = require('mocha');

/**
 * Mocha's own report, and then, as the very last line of the run, `N passed, N failed` (and `, N skipped` if any). A hook
 * that fails counts as failed, and so does what never got as far as a test: a file that can't be read, a global set-up.
 */
class Reporter extends reporters.Spec {
  done(failures, exit) {
    const { passes, failures: failed, pending } = this.stats;
    const skipped = pending > 0 ? `, ${pending} skipped` : '';
    process.stdout.write(`${passes} passed, ${Math.max(failed, failures)} failed${skipped}\n`, () => exit(failures));
  }
}

module.exports = Reporter;
