-- What a partition was filled from, so that what has moved since is found; and which events somebody was told of.

-- The pipelines whose partitions must be filled before those of this one that overlap them.
ALTER TABLE repave.pipeline ADD COLUMN after text[] NOT NULL DEFAULT '{}';

ALTER TABLE repave.fill
  ADD COLUMN source_version text,
  ADD COLUMN upstream       text,
  ADD COLUMN checksum       text;
COMMENT ON COLUMN repave.fill.source_version IS 'what the pipeline''s changed said of the source before its rows were read; null: it has none, or had none then';
COMMENT ON COLUMN repave.fill.upstream IS 'a digest of the fills that the partitions held which it comes after, before its rows were read; null: it comes after none';
COMMENT ON COLUMN repave.fill.checksum IS 'of the rows that stood in the window, with the names of the columns it was taken of; null: the pipeline has no checksum, or had none then';

-- The same of the fill that stands.
ALTER TABLE repave.partition
  ADD COLUMN fill              bigint,
  ADD COLUMN source_version    text,
  ADD COLUMN upstream          text,
  ADD COLUMN found_at          timestamptz,
  ADD COLUMN found_ledger_rows bigint,
  ADD COLUMN found_table_rows  bigint;
COMMENT ON COLUMN repave.partition.found_at IS 'when verify found other rows than the last fill left; null: it has not, or the partition was filled since (an older version leaves it, and filled_at is later)';
COMMENT ON COLUMN repave.partition.fill IS 'id of the last fill that wrote rows, by which partitions that come after this one know what they were filled from; null: by an older version';

-- One row an event, once somebody was told.
CREATE TABLE repave.notice (
  id      text        PRIMARY KEY,
  told_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp()
);
