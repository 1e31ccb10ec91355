-- Fills that wrote nothing, tables whose rows were there before Repave, and pipelines that have another name now.

ALTER TABLE repave.fill
  ADD COLUMN unchanged boolean NOT NULL DEFAULT false,
  ADD COLUMN adopted   boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN repave.fill.unchanged IS 'the new rows equalled the old: none was written, and rows_inserted says how many stand';
COMMENT ON COLUMN repave.fill.adopted IS 'no fill: rows that stood in the table were recorded as filled';

-- A pipeline's rows of the ledger under its new name. The tables of fills and failures are append-only to workers, so this
-- runs with the rights of whoever migrates, and does only what its name says: nothing is lost, since a name that has rows of
-- its own is refused, and so it can be undone by carrying them back. Claims stay: a fill under the former name may neither
-- claim nor commit under the new one. Returns how many partitions have the new name now.
CREATE FUNCTION repave.carry_over(former text, name text) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  carried bigint;
BEGIN
  IF EXISTS (SELECT FROM repave.partition p WHERE p.pipeline = carry_over.name)
     OR EXISTS (SELECT FROM repave.fill f WHERE f.pipeline = carry_over.name)
     OR carry_over.former = carry_over.name THEN
    RAISE EXCEPTION USING ERRCODE = 'unique_violation',
      MESSAGE = pg_catalog.format('the ledger has rows of %s already', carry_over.name);
  END IF;
  UPDATE repave.partition p SET pipeline = carry_over.name WHERE p.pipeline = carry_over.former;
  GET DIAGNOSTICS carried = ROW_COUNT;
  UPDATE repave.fill f SET pipeline = carry_over.name WHERE f.pipeline = carry_over.former;
  UPDATE repave.failure f SET pipeline = carry_over.name WHERE f.pipeline = carry_over.former;
  UPDATE repave.backfill b SET pipeline = carry_over.name WHERE b.pipeline = carry_over.former;
  -- Since when its fingerprint is registered goes with it.
  UPDATE repave.pipeline p SET name = carry_over.name
   WHERE p.name = carry_over.former AND NOT EXISTS (SELECT FROM repave.pipeline o WHERE o.name = carry_over.name);
  DELETE FROM repave.pipeline p WHERE p.name = carry_over.former;
  RETURN carried;
END $$;
REVOKE ALL ON FUNCTION repave.carry_over(text, text) FROM PUBLIC;
