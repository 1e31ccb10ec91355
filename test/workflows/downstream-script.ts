import { randomBytes } from 'node:crypto';
import type { BackfillPlan, PlannedBackfill } from '../../src/activities/messages.js';
import type { BackfillInput } from '../../src/contract.js';
import { days, POLICY, type Script } from './scripted.js';

/** Partitions of each pipeline of the script. */
export const KEYS = days('2024-01-01', 3);

export interface DownstreamScript {
  /** Two that depend on the scripted pipeline, of which the second does not come after the first. */
  readonly names: readonly [string, string];
  readonly script: Script;
}

/**
 * A backfill with `downstream`, and two pipelines that depend on its own. `planned`: called before the backfill of one of these is
 * planned, which fails as it does.
 */
export function withDownstream(
  { plan, ...script }: Script = {},
  planned: (pipeline: string) => Promise<void> | void = () => undefined,
): DownstreamScript {
  const suffix = randomBytes(6).toString('hex');
  const names = [`first_${suffix}`, `second_${suffix}`] as const;
  const base = {
    total: KEYS.length,
    first: KEYS[0],
    last: KEYS.at(-1),
    notes: [],
    priority: 3,
    onBusy: 'wait',
  } as const;
  return {
    names,
    script: {
      keys: KEYS,
      ...script,
      control: {
        planBackfill: async ({ arguments: [input] }): Promise<PlannedBackfill> => {
          const { pipeline } = input as BackfillInput;
          const depends = names.some((name) => name === pipeline);
          if (depends) await planned(pipeline);
          const own: BackfillPlan = { pipeline, run: `run of ${pipeline}`, concurrency: 3, policy: POLICY, ...base };
          return { plan: depends ? own : { ...own, downstream: true, ...plan }, keys: KEYS };
        },
        planDownstream: async ({ pipeline, first, last }) => ({
          pipelines: names.map((name) => ({ pipeline: name, after: [pipeline], total: KEYS.length, first, last })),
          notes: [],
        }),
        ...script.control,
      },
    },
  };
}
