-- The ledger: what each partition holds, and how it came to.

-- IF NOT EXISTS would ask for the right to create one even where an administrator has made it for this role.
DO $$ BEGIN
  IF pg_catalog.to_regnamespace('repave') IS NULL THEN CREATE SCHEMA repave; END IF;
END $$;

-- One row: by its id a run knows that a worker's database is the one it was planned against.
CREATE TABLE repave.ledger (
  single  boolean     PRIMARY KEY DEFAULT true CHECK (single),
  id      uuid        NOT NULL DEFAULT pg_catalog.gen_random_uuid(),
  made_at timestamptz NOT NULL DEFAULT pg_catalog.now()
);
INSERT INTO repave.ledger DEFAULT VALUES;

-- What workers serve. `outdated` is judged by the fingerprint here, never by a file that lies beside a command.
CREATE TABLE repave.pipeline (
  name             text        PRIMARY KEY,
  target           text        NOT NULL,
  partition_column text        NOT NULL,
  by               text        NOT NULL,
  zone             text        NOT NULL,
  scope            jsonb       NOT NULL DEFAULT '{}',
  fingerprint      text        NOT NULL,
  start            text,
  registered_at    timestamptz NOT NULL DEFAULT pg_catalog.now(),
  since            timestamptz NOT NULL DEFAULT pg_catalog.now()
);
CREATE INDEX pipeline_target ON repave.pipeline (target);
COMMENT ON COLUMN repave.pipeline.since IS 'when this fingerprint was first registered';

-- One row a partition that was ever filled or failed for good.
CREATE TABLE repave.partition (
  pipeline        text        NOT NULL,
  key             text        NOT NULL,
  outcome         text        NOT NULL CHECK (outcome IN ('filled', 'failed')),
  rows            bigint,
  fingerprint     text,
  filled_at       timestamptz,
  failed_at       timestamptz,
  failure_type    text,
  failure_message text,
  run             text        NOT NULL,
  attempt         integer     NOT NULL,
  fence           bigint      NOT NULL,
  PRIMARY KEY (pipeline, key)
) WITH (fillfactor = 80);
COMMENT ON COLUMN repave.partition.outcome IS 'the last outcome; after a failure, rows, fingerprint and filled_at still say what stands';

-- Append-only: committed fills. At most one a run and partition, whatever happens.
CREATE TABLE repave.fill (
  id            bigint           GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline      text             NOT NULL,
  key           text             NOT NULL,
  window_start  timestamptz      NOT NULL,
  window_end    timestamptz      NOT NULL,
  run           text             NOT NULL,
  activity      text             NOT NULL,
  attempt       integer          NOT NULL,
  fence         bigint           NOT NULL,
  fingerprint   text             NOT NULL,
  rows_deleted  bigint           NOT NULL,
  rows_inserted bigint           NOT NULL,
  seconds       double precision NOT NULL,
  checks        jsonb            NOT NULL,
  warnings      text[]           NOT NULL,
  filled_at     timestamptz      NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  UNIQUE (pipeline, key, run)
);
CREATE INDEX fill_partition ON repave.fill (pipeline, key, id);

-- Final failures, each run's at most once a partition.
CREATE TABLE repave.failure (
  id        bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  pipeline  text        NOT NULL,
  key       text        NOT NULL,
  run       text        NOT NULL,
  attempt   integer     NOT NULL,
  fence     bigint      NOT NULL,
  type      text        NOT NULL,
  message   text        NOT NULL,
  failed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  UNIQUE (pipeline, key, run)
);

-- A run's newest attempt on a partition. Gone once the fill has committed.
CREATE TABLE repave.claim (
  pipeline     text        NOT NULL,
  key          text        NOT NULL,
  run          text        NOT NULL,
  fence        bigint      GENERATED ALWAYS AS IDENTITY,
  scheduled_at bigint      NOT NULL,
  attempt      integer     NOT NULL,
  deadline     timestamptz NOT NULL,
  faults       integer     NOT NULL DEFAULT 0,
  closed       boolean     NOT NULL DEFAULT false,
  claimed_at   timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  PRIMARY KEY (pipeline, key, run)
) WITH (fillfactor = 80);
COMMENT ON COLUMN repave.claim.scheduled_at IS 'milliseconds since the epoch; attempts are ordered by (scheduled_at, attempt)';
COMMENT ON COLUMN repave.claim.faults IS 'failures that count against the pipeline''s retry.attempts';
COMMENT ON COLUMN repave.claim.closed IS 'the run has ended: no attempt of it may claim again';

-- One row a backfill, for those who look while no worker runs.
CREATE TABLE repave.backfill (
  run          text        PRIMARY KEY,
  id           text        NOT NULL,
  pipeline     text        NOT NULL,
  input        jsonb       NOT NULL,
  total        bigint      NOT NULL,
  filled       bigint      NOT NULL DEFAULT 0,
  failed       bigint      NOT NULL DEFAULT 0,
  skipped      bigint      NOT NULL DEFAULT 0,
  rows         bigint      NOT NULL DEFAULT 0,
  outcome      text        CHECK (outcome IN ('done', 'incomplete', 'cancelled', 'failed')),
  started_at   timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
  ended_at     timestamptz
);
CREATE INDEX backfill_id ON repave.backfill (id, started_at);
CREATE INDEX backfill_pipeline ON repave.backfill (pipeline, started_at);

-- The fixed list of a run that no range says.
CREATE TABLE repave.run_key (
  run text    NOT NULL,
  seq integer NOT NULL,
  key text    NOT NULL,
  PRIMARY KEY (run, seq)
);
