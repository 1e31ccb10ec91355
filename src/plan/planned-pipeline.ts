import type { Pipeline } from '../pipeline/pipeline.js';

/** What a plan asks of a pipeline: a file has it, and but for `lookback` the ledger's registry too. */
export type PlannedPipeline = Pick<Pipeline, 'name' | 'partition' | 'start' | 'lookback' | 'fingerprint' | 'after'>;
