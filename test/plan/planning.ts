import assert from 'node:assert/strict';
import type { BackfillInput } from '../../src/contract.js';
import { Failure } from '../../src/failure.js';
import type { Pipeline } from '../../src/pipeline/pipeline.js';
import { type Plan, type PlanEntry, resolvePlan } from '../../src/plan/resolve-plan.js';
import type { Span } from '../../src/plan/selection.js';
import type { StateRow } from '../../src/warehouse/partition-states.js';

export const FINGERPRINT = 'v1:now';

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
  query: { text: '', parameters: [], pieces: [''], slots: [] },
  ...(settings as object),
});

export const row = (key: string, outcome: 'filled' | 'failed', fingerprint: string | null): StateRow => ({
  key,
  outcome,
  rows: fingerprint === null ? null : 1,
  fingerprint,
  filledAt: fingerprint === null ? null : new Date(0),
  sourceVersion: null,
});

/** The ledger: two filled, one outdated, one failed over older rows, one failed with none; all others are missing. */
export const ledger = [
  row('2024-03-01', 'filled', FINGERPRINT),
  row('2024-03-02', 'filled', FINGERPRINT),
  row('2024-03-03', 'filled', 'v1:before'),
  row('2024-03-04', 'failed', FINGERPRINT),
  row('2024-03-05', 'failed', null),
];

export const NOW = new Date('2024-03-10T12:00:00Z');

/** A plan with its pages put together. */
export interface WholePlan extends Plan {
  readonly entries: readonly Pick<PlanEntry, 'key' | 'reason'>[];
}

export const plan = async (
  fields: Omit<BackfillInput, 'pipeline'>,
  settings: Partial<Pipeline> = {},
  facts: { now?: Date; asOf?: Date; before?: Date; pageSize?: number; ledger?: readonly StateRow[] } = {},
): Promise<WholePlan> => {
  const entries: Pick<PlanEntry, 'key' | 'reason'>[] = [];
  const found = await resolvePlan(
    { pipeline: 'sales', ...fields },
    pipeline(settings),
    { now: NOW, ...facts, states: statesOf(facts.ledger ?? ledger) },
    (page) => void entries.push(...page.map(({ key, reason }) => ({ key, reason }))),
  );
  return { ...found, entries };
};

export const statesOf =
  (rows: readonly StateRow[]) =>
  (spans: readonly Span[]): Promise<ReadonlyMap<string, StateRow>> =>
    Promise.resolve(
      new Map(
        rows
          .filter(({ key }) => spans.some(({ from, to }) => from <= key && key <= to))
          .map((entry) => [entry.key, entry]),
      ),
    );

export const keysOf = ({ entries }: WholePlan): string[] => entries.map(({ key }) => key);

export const refused = (planning: Promise<unknown>, message: RegExp): Promise<void> =>
  assert.rejects(planning, (error) => {
    assert.ok(error instanceof Failure, String(error));
    assert.equal(error.type, 'InvalidInput');
    assert.match(error.message, message);
    return true;
  });
