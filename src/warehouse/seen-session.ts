/** A session as pg_locks and pg_stat_activity show it to this role, from which other roles' sessions hide some: that is null. */
export interface SeenSession {
  /** Null: a prepared transaction. */
  readonly pid: number | null;
  readonly role: string | null;
  readonly application: string | null;
  /** When its transaction began, or, without one, when it last did something: an ISO instant. */
  readonly since: string | null;
}

/** SQL that selects a {@link SeenSession} from a row `l` of pg_locks and its `a` of pg_stat_activity. Never its query or its address. */
export const SEEN_SESSION = `l.pid, a.usename AS role, a.application_name AS application, ${isoInstant('coalesce(a.xact_start, a.state_change)')} AS since`;

/** SQL for a timestamptz as an ISO instant, to the second. */
export function isoInstant(timestamp: string): string {
  return `pg_catalog.to_char(pg_catalog.timezone('UTC', ${timestamp}), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`;
}

/** A session in words for a message, on one line: as much as is known of it. */
export function sessionInWords({ pid, role, application, since }: SeenSession): string {
  if (pid === null) return 'a prepared transaction (see pg_prepared_xacts)';
  return [
    `pid ${pid}`,
    role && `role ${role}`,
    application && `application ${JSON.stringify(application)}`,
    since && `since ${since}`,
  ]
    .filter(Boolean)
    .join(', ');
}
