/**
 * What `repave prune` may remove, as SQL. It never touches what a promise rests on: the newest fill of each partition, the
 * failures that a partition's state is about, all of a backfill that is open, and what a run that still tries may look for.
 */
export interface PrunableTable {
  readonly table: string;
  /** The columns of its primary key, with their types: the order in which it is walked through. */
  readonly key: readonly (readonly [column: string, type: string])[];
  /** When a row was written, where the key grows with that: the walk ends at the first page that has nothing old. */
  readonly writtenAt?: string;
  /** SQL of a row `t`, true where it may go; $1 is the instant before which what is over counts as old. */
  readonly old: string;
}

/** Its progress is counted from its fills and failures, and `retryFailed` goes by them. */
const OF_AN_OPEN_BACKFILL = 'EXISTS (SELECT FROM repave.backfill b WHERE b.run = t.backfill AND b.outcome IS NULL)';

/** The tables that grow with each run, in the order in which they are pruned: what says that other rows are over goes last. */
export const PRUNABLE: readonly PrunableTable[] = [
  {
    table: 'run_key',
    key: [
      ['run', 'text'],
      ['seq', 'int4'],
    ],
    // Lists of a run's later attempts are `run#2` and so on. A list is read until its backfill ends, and `terminated` is what the
    // ledger has concluded. A list without a backfill is that of a plan which is just being made, or never was.
    old: `CASE WHEN EXISTS (SELECT FROM repave.backfill b WHERE b.run = pg_catalog.split_part(t.run, '#', 1))
               THEN EXISTS (SELECT FROM repave.backfill b
                             WHERE b.run = pg_catalog.split_part(t.run, '#', 1) AND b.outcome IS NOT NULL
                               AND (b.outcome <> 'terminated' OR b.ended_at < $1))
               ELSE t.kept_at < $1 END`,
  },
  {
    table: 'claim',
    key: [
      ['pipeline', 'text'],
      ['key', 'text'],
      ['run', 'text'],
    ],
    // Its run has given up long since, whether it failed, was cancelled or was terminated: an attempt renews its claim.
    old: 't.deadline < $1',
  },
  {
    table: 'fill',
    key: [['id', 'int8']],
    writtenAt: 'filled_at',
    // The newest that wrote rows stays beside newer ones that found nothing changed: by it is known what was read from these rows.
    old: `t.filled_at < $1
          AND EXISTS (SELECT FROM repave.fill n
                       WHERE n.pipeline = t.pipeline AND n.key = t.key AND n.id > t.id AND (t.unchanged OR NOT n.unchanged))
          AND NOT ${OF_AN_OPEN_BACKFILL}`,
  },
  {
    table: 'failure',
    key: [['id', 'int8']],
    writtenAt: 'failed_at',
    // How often a partition has failed in the same way decides whether it rests: a look that forgot would try it anew.
    old: `t.failed_at < $1
          AND NOT EXISTS (SELECT FROM repave.partition p
                           WHERE p.pipeline = t.pipeline AND p.key = t.key AND p.outcome = 'failed'
                             AND (p.run = t.run OR p.failure_type = t.type AND (p.filled_at IS NULL OR t.failed_at > p.filled_at)))
          AND NOT ${OF_AN_OPEN_BACKFILL}`,
  },
  {
    table: 'notice',
    key: [['id', 'text']],
    old: 't.told_at < $1',
  },
  {
    table: 'backfill',
    key: [['run', 'text']],
    // One that is open, not paused, and has neither filled nor failed anything for so long was terminated: a live one's
    // partitions end within giveUpAfter, either way. One that is paused waits for a person.
    old: `CASE WHEN t.outcome IS NOT NULL THEN coalesce(t.ended_at, t.started_at) < $1
               ELSE t.started_at < $1 AND t.paused_at IS NULL
                    AND NOT EXISTS (SELECT FROM repave.fill f WHERE f.backfill = t.run AND f.filled_at >= $1)
                    AND NOT EXISTS (SELECT FROM repave.failure x WHERE x.backfill = t.run AND x.failed_at >= $1) END`,
  },
];
