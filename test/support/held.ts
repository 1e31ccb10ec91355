/** Runs as the tables' owner: the function `waits`, which a query calls to sleep for as long as the table `held` has a row. */
export const HELD = `
  CREATE TABLE held (held boolean);
  CREATE FUNCTION waits() RETURNS int LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    WHILE EXISTS (SELECT FROM public.held) LOOP PERFORM pg_sleep(0.05); END LOOP;
    RETURN 1;
  END $$;`;
