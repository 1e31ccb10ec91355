-- Which backfill a fill or a failure is part of, who started it, and how a backfill is set while it runs.

ALTER TABLE repave.fill ADD COLUMN backfill text, ADD COLUMN started_by text;
COMMENT ON COLUMN repave.fill.backfill IS 'the run of repave.backfill it is part of; null: started alone, adopted, or by an older version';
COMMENT ON COLUMN repave.fill.started_by IS 'who started the run, as Temporal has it';
ALTER TABLE repave.failure ADD COLUMN backfill text, ADD COLUMN started_by text;

-- What a backfill has come to so far, for those who look while no worker runs.
CREATE INDEX fill_backfill ON repave.fill (backfill) WHERE backfill IS NOT NULL;
CREATE INDEX failure_backfill ON repave.failure (backfill, key COLLATE "C") WHERE backfill IS NOT NULL;

ALTER TABLE repave.backfill
  ADD COLUMN started_by    text,
  ADD COLUMN concurrency   integer,
  ADD COLUMN paused_by     text CHECK (paused_by IN ('lever', 'failures', 'canary')),
  ADD COLUMN paused_reason text,
  ADD COLUMN paused_at     timestamptz,
  ADD COLUMN stopping      boolean NOT NULL DEFAULT false,
  DROP CONSTRAINT backfill_outcome_check,
  ADD CONSTRAINT backfill_outcome_check CHECK (outcome IN ('done', 'incomplete', 'stopped', 'cancelled', 'failed', 'terminated'));
COMMENT ON COLUMN repave.backfill.paused_at IS 'null: it is not paused';
COMMENT ON COLUMN repave.backfill.outcome IS 'terminated: it never said how it ended, and another run has its id now';
CREATE INDEX backfill_open ON repave.backfill (started_at) WHERE outcome IS NULL;

-- Ranges of keys, in the order of time, and what is wrong among them.
CREATE UNIQUE INDEX partition_key ON repave.partition (pipeline, key COLLATE "C");
CREATE INDEX partition_failed ON repave.partition (pipeline, key COLLATE "C") WHERE outcome = 'failed';
-- What fills of a pipeline have taken lately. By time: to a planner that thinks a pipeline has most of the fills, the order of
-- ids looks as well served by the primary key, which reads all other pipelines' fills on its way.
CREATE INDEX fill_recent ON repave.fill (pipeline, filled_at);

-- Since when a list is kept: one that no backfill has named was never used.
ALTER TABLE repave.run_key ADD COLUMN kept_at timestamptz NOT NULL DEFAULT pg_catalog.now();
