import { downstreamOf, type Ordered } from '../pipeline/after.js';

/**
 * Of some pipelines that no worker has registered in a ledger yet those that come after one, directly or through others, in their
 * order. What the ledger alone goes by would leave them out without a word.
 */
export function unregisteredDownstream<Unregistered extends Ordered>(
  root: string,
  registered: readonly Ordered[],
  unregistered: readonly Unregistered[],
): Unregistered[] {
  const missing = new Map(unregistered.map((pipeline) => [pipeline.name, pipeline]));
  for (const { name } of registered) missing.delete(name);
  const all = new Map<string, Ordered>([...registered.map((one) => [one.name, one] as const), ...missing]);
  return downstreamOf(root, all).flatMap((name) => missing.get(name) ?? []);
}
