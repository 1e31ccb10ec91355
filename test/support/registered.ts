import type { RegisteredPipeline } from '../../src/warehouse/ledger.js';

/** A pipeline of a plain target as a worker has registered it, with its partitions of the fingerprint `v1:now`. */
export function registered(
  name: string,
  by: string,
  after: readonly string[],
  more: Partial<RegisteredPipeline> = {},
): RegisteredPipeline {
  const at = new Date('2024-03-20T12:00:00Z');
  return {
    name,
    target: `public.${name}`,
    column: 'at',
    by,
    zone: 'UTC',
    scope: {},
    fingerprint: 'v1:now',
    start: null,
    after,
    registeredAt: at,
    since: at,
    ...more,
  };
}
