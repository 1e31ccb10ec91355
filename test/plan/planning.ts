import assert from 'node:assert/strict';
import type { BackfillInput } from '../../src/contract.js';
import { Failure } from '../../src/failure.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { type Plan, resolvePlan } from '../../src/plan/resolve-plan.js';
import type { PartitionRow } from '../../src/warehouse/partitions.js';

const FINGERPRINT = 'v1:now';

export const pipeline = (settings: Partial<Pipeline> = {}): Pipeline => ({
  kind: 'sql',
  name: 'sales',
  file: '/project/pipelines/sales.sql',
  target: { table: 'sales_summary' },
  partition: { column: 'd', by: 'day', zone: 'UTC' },
  start: '2023-01-01',
  checks: [],
  retry: { attempts: 3, giveUpAfterMs: 1 },
  timeoutMs: 1,
  lookback: 0,
  allowEmpty: true,
  database: 'DATABASE_URL',
  fingerprint: FINGERPRINT,
  query: { text: '', parameters: [] },
  ...(settings as object),
});

const row = (key: string, outcome: 'filled' | 'failed', fingerprint: string | null): PartitionRow => ({
  key,
  outcome,
  rows: fingerprint === null ? null : 1,
  fingerprint,
  filledAt: fingerprint === null ? null : new Date(0),
  failedAt: outcome === 'failed' ? new Date(0) : null,
  failureType: null,
  failureMessage: null,
  run: 'run',
  attempt: 1,
});

/** The ledger: two filled, one outdated, one failed over older rows, one failed with none; all others are missing. */
const ledger = [
  row('2024-03-01', 'filled', FINGERPRINT),
  row('2024-03-02', 'filled', FINGERPRINT),
  row('2024-03-03', 'filled', 'v1:before'),
  row('2024-03-04', 'failed', FINGERPRINT),
  row('2024-03-05', 'failed', null),
];

export const NOW = new Date('2024-03-10T12:00:00Z');

export const plan = (
  fields: Omit<BackfillInput, 'pipeline'>,
  settings: Partial<Pipeline> = {},
  times: { now?: Date; asOf?: Date } = {},
): Promise<Plan> =>
  resolvePlan({ pipeline: 'sales', ...fields }, pipeline(settings), {
    now: NOW,
    ...times,
    rows: (from, to) =>
      Promise.resolve(new Map(ledger.filter(({ key }) => from <= key && key <= to).map((entry) => [entry.key, entry]))),
  });

export const keysOf = ({ entries }: Plan): string[] => entries.map(({ key }) => key);

export const refused = (planning: Promise<unknown>, message: RegExp): Promise<void> =>
  assert.rejects(planning, (error) => {
    assert.ok(error instanceof Failure, String(error));
    assert.equal(error.type, 'InvalidInput');
    assert.match(error.message, message);
    return true;
  });
