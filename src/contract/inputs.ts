/**
 * What a partition needs of the world: which of several states it is in. Exactly one holds, the first that fits. `changed` is
 * asked of the source, and so only where `only` names it; else such a partition is `filled`.
 */
export const PARTITION_STATES = ['failed', 'missing', 'outdated', 'changed', 'filled'] as const;
export type PartitionState = (typeof PARTITION_STATES)[number];

/** States that `only` may select. */
export const SELECTABLE_STATES = ['missing', 'failed', 'outdated', 'changed'] as const;
export type SelectableState = (typeof SELECTABLE_STATES)[number];

export const ORDERS = ['oldest-first', 'newest-first'] as const;
export type Order = (typeof ORDERS)[number];

export const ON_BUSY = ['wait', 'skip', 'fail'] as const;
export type OnBusy = (typeof ON_BUSY)[number];

export const ON_FAILURE = ['continue', 'pause', 'stop'] as const;
export type OnFailure = (typeof ON_FAILURE)[number];

/** The input of the workflow `backfill`: one JSON object. Exactly one of a range, `keys` or `last`; or none, with `only`. */
export interface BackfillInput {
  /**
   * A pipeline's name: its path under `pipelines/` without extension.
   *
   * @maxLength 200
   * @pattern ^[a-z0-9_]+(/[a-z0-9_]+)*$
   */
  readonly pipeline: string;
  /**
   * First key, included.
   *
   * @minLength 1
   * @maxLength 200
   */
  readonly from?: string;
  /**
   * Last key, included. Absent: to the newest finished partition.
   *
   * @minLength 1
   * @maxLength 200
   */
  readonly to?: string;
  /**
   * Any set: keys and ranges written `from..to`. At most `MAX_KEYS` (10,000) entries.
   *
   * @minItems 1
   * @maxItems 10000
   * @items { "type": "string", "minLength": 1, "maxLength": 200 }
   */
  readonly keys?: readonly string[];
  /**
   * The n newest finished partitions.
   *
   * @integer
   * @minimum 1
   * @maximum 1000000
   */
  readonly last?: number;
  /**
   * Partitions before those of `last` that are filled with them, for rows that come late. With `last` only. Default: the pipeline's, else 0.
   *
   * @integer
   * @minimum 0
   * @maximum 10000
   */
  readonly lookback?: number;
  /**
   * Only partitions in these states. Absent: every partition named, since a person who names a range means it.
   *
   * @minItems 1
   */
  readonly only?: readonly SelectableState[];
  /**
   * The id of a plan, as `repave plan` and `dryRun` give it: exactly that list is filled. Where today's differs, the run fails as
   * `PlanChanged`, with counts then and now.
   *
   * @pattern ^p1-[0-9a-z]{1,12}(-(failed|missing|outdated|changed|filled)[1-9][0-9]{0,8})*-[0-9a-f]{20}$
   */
  readonly plan?: string;
  /**
   * With `only` and `failed` in it: partitions that have failed this often in the same way, since they were last filled and by the
   * pipeline as it is now, rest: they are left out, and counted.
   *
   * @integer
   * @minimum 1
   * @maximum 1000
   */
  readonly tries?: number;
  /** Once all of it is filled, fill what depends on it too, by the pipelines' `after`: their partitions that overlap these, in order. */
  readonly downstream?: boolean;
  /** Default `oldest-first`. */
  readonly order?: Order;
  /**
   * Partitions at once in this backfill, 1 to `MAX_CONCURRENCY` (100). Default: the pipeline's, else 4.
   *
   * @integer
   * @minimum 1
   * @maximum 100
   */
  readonly concurrency?: number;
  /**
   * 1 (first) to 5 (last). Default 3.
   *
   * @integer
   * @minimum 1
   * @maximum 5
   */
  readonly priority?: number;
  /**
   * Fill the first n alone (of a pipeline with a `batch`: whole batches), and go on only if they all succeed: else the run stops, or with `onFailure: pause` pauses.
   *
   * @integer
   * @minimum 1
   * @maximum 1000000
   */
  readonly canary?: number;
  /** Once {@link maxFailures} partitions have failed. Default `continue`. */
  readonly onFailure?: OnFailure;
  /**
   * For `onFailure` `pause` and `stop`, and only with them. Default 1.
   *
   * @integer
   * @minimum 1
   * @maximum 1000000
   */
  readonly maxFailures?: number;
  /** A partition that another run is filling. Default `wait`: until it has ended, then fill. */
  readonly onBusy?: OnBusy;
  /** Take in the current, unfinished partition. Never the future. */
  readonly includeUnfinished?: boolean;
  /** Plan, write nothing; the result says what would be filled. */
  readonly dryRun?: boolean;
}

/** The input of the workflow `partition`, which other systems may start alone: one JSON object. */
export interface PartitionInput {
  /**
   * As in {@link BackfillInput}.
   *
   * @maxLength 200
   * @pattern ^[a-z0-9_]+(/[a-z0-9_]+)*$
   */
  readonly pipeline: string;
  /**
   * Its name, such as `2024-02-29`.
   *
   * @minLength 1
   * @maxLength 200
   */
  readonly key: string;
  readonly onBusy?: OnBusy;
  readonly includeUnfinished?: boolean;
}
