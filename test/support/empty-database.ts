import type { TestDatabase } from './database.js';
import { asSuperuser } from './superuser.js';

/**
 * Gives a test the database of its file as if it were new: without what earlier tests made, the ledger empty, and no
 * defaults for the worker's role. Much quicker than a new database.
 */
export async function emptyDatabase(test: TestDatabase): Promise<void> {
  await asSuperuser(
    test,
    `SET client_min_messages = warning;
     DROP EXTENSION IF EXISTS file_fdw, pg_stat_statements CASCADE;
     DO $$ DECLARE name name; BEGIN
       FOR name IN SELECT pubname FROM pg_publication LOOP EXECUTE format('DROP PUBLICATION %I', name); END LOOP;
       FOR name IN SELECT nspname FROM pg_namespace WHERE nspname !~ '^pg_' AND nspname NOT IN ('information_schema', 'repave') LOOP
         EXECUTE format('DROP SCHEMA %I CASCADE', name);
       END LOOP;
     END $$;
     CREATE SCHEMA public AUTHORIZATION pg_database_owner;
     GRANT USAGE ON SCHEMA public TO PUBLIC;
     TRUNCATE repave.pipeline, repave.partition, repave.fill, repave.failure, repave.claim, repave.backfill, repave.run_key RESTART IDENTITY;
     ALTER ROLE ${test.workerRole} IN DATABASE ${test.name} RESET ALL`,
  );
}
