import type { Session } from './session.js';

/**
 * Whether a transaction of one snapshot has read, or would read, a table whose rows that snapshot does not know: one that was
 * truncated, written anew or made since it was taken. PostgreSQL takes the snapshot before it waits for a table's lock, and shows
 * no row then: https://www.postgresql.org/docs/current/mvcc-caveats.html. A table has another file after that; its number is read
 * by the snapshot in pg_class, and as it is now by pg_relation_filenode.
 *
 * Asked of all that the transaction has locked so far, and so keeps as it is: behind views, in functions and parts of tables too.
 * It needs no right on any of them. CLUSTER and VACUUM FULL look the same, and hide nothing.
 */
export async function isSnapshotStale(session: Session): Promise<boolean> {
  const [row] = await session.rows<{ stale: boolean }>(
    // Those of the catalog that have no number of their own have 0 there.
    `SELECT coalesce(pg_catalog.bool_or(c.oid IS NULL
                                        OR c.relfilenode <> 0 AND c.relfilenode <> pg_catalog.pg_relation_filenode(c.oid)),
                     false) AS stale
       FROM pg_catalog.pg_locks l LEFT JOIN pg_catalog.pg_class c ON c.oid = l.relation
      WHERE l.pid = pg_catalog.pg_backend_pid() AND l.locktype = 'relation'
        AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())`,
  );
  return row?.stale ?? false;
}
