/** Tables by which a test says what becomes of a pipeline's days: those that `bad` names fail for good, those that `brake` names wait. */
export const BAD_AND_BRAKE = `
  CREATE TABLE bad (day date NOT NULL);
  CREATE TABLE brake (day date NOT NULL);
  CREATE FUNCTION held(asked date) RETURNS boolean LANGUAGE plpgsql VOLATILE AS $$
  BEGIN
    WHILE EXISTS (SELECT FROM public.brake WHERE day = asked) LOOP PERFORM pg_sleep(0.05); END LOOP;
    RETURN true;
  END $$;`;

/** A pipeline that goes by them, one row a day. */
export function dailyPipeline(target: string, day: string, value: string, start: string): string {
  return `-- repave
-- target: ${target}
-- partition: { column: ${day}, by: day }
-- start: ${start}
SELECT :date AS ${day}, 1 / (SELECT 1 - count(*) FROM bad WHERE day = :date) AS ${value} FROM held(:date)
`;
}
