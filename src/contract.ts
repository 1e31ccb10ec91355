/**
 * What callers and workflows share: names, inputs, results and failure types. Types and constants only, so that any
 * program may import it (as `repave/contract`) without bringing in a database driver or the Temporal worker.
 */
export * from './contract/failures.js';
export * from './contract/inputs.js';
export * from './contract/levers.js';
export * from './contract/limits.js';
export * from './contract/names.js';
export * from './contract/notices.js';
export * from './contract/progress.js';
export * from './contract/results.js';
