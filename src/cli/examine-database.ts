import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId } from '../warehouse/ledger.js';
import { grantsFor, ledgerState } from '../warehouse/migrate.js';
import { examineLedgerSize } from './examine-ledger-size.js';
import { type Finding, fine, unsure, wrong } from './finding.js';

interface Facts {
  readonly database: string;
  readonly role: string;
  readonly version: string;
  readonly superuser: boolean;
  readonly bypassrls: boolean;
  readonly replica: boolean;
}

/** Looks at one database as the role that is logged in: server, ledger, and the privileges that its pipelines need. */
export async function examineDatabase(database: Database, pipelines: readonly Pipeline[]): Promise<Finding[]> {
  const facts = await readFacts(database);
  if (!facts) return [wrong('database', 'It says nothing of the role that is logged in.')];
  const findings = [fine(`PostgreSQL ${facts.version}, database ${facts.database}, role ${facts.role}`)];
  if (facts.replica) findings.push(wrong('this server is a standby', 'Name the primary: nothing can be filled here.'));
  if (facts.superuser)
    findings.push(
      unsure(`${facts.role} is a superuser`, 'A worker needs no more than `repave migrate --role …` grants.'),
    );
  else if (facts.bypassrls)
    findings.push(
      unsure(`${facts.role} bypasses row-level security`, 'Fine where the target has policies and that is meant.'),
    );
  findings.push(...(await examineLedger(database, facts, pipelines)));
  return findings;
}

async function readFacts(database: Database): Promise<Facts | undefined> {
  const [facts] = await database.query<Facts>(
    `SELECT pg_catalog.current_database() AS database, current_user AS role, pg_catalog.current_setting('server_version') AS version,
            rolsuper AS superuser, rolbypassrls AS bypassrls, pg_catalog.pg_is_in_recovery() AS replica
       FROM pg_catalog.pg_roles WHERE rolname = current_user`,
  );
  return facts;
}

/** Looks at a database that queries read from: nothing of Repave's is there, and nothing is ever written. */
export async function examineSource(source: Database, variable: string): Promise<Finding[]> {
  const facts = await readFacts(source);
  if (!facts) return [wrong(`source (${variable})`, 'It says nothing of the role that is logged in.')];
  const findings = [
    fine(`source ${variable}: PostgreSQL ${facts.version}, database ${facts.database}, role ${facts.role}, read-only`),
  ];
  if (facts.superuser)
    findings.push(
      unsure(
        `${facts.role} is a superuser of the source ${variable}`,
        'It needs CONNECT, and SELECT on what queries read.',
      ),
    );
  return findings;
}

async function examineLedger(database: Database, facts: Facts, pipelines: readonly Pipeline[]): Promise<Finding[]> {
  const state = await ledgerState(database);
  switch (state) {
    case 'missing':
      return [wrong('no ledger', 'Run `repave migrate`.')];
    case 'older':
      return [wrong('the ledger is older than this version of Repave', 'Run `repave migrate`.')];
    case 'newer':
      return [wrong('the ledger is newer than this version of Repave', 'Upgrade Repave here.')];
    case 'current':
      return [
        fine(`ledger ${await ledgerId(database)}`),
        ...(await examinePrivileges(database, facts, pipelines)),
        ...(facts.replica ? [] : await examineLedgerSize(database)),
      ];
  }
}

/** Asks of every grant that `repave migrate` would give whether the role has it, however it came to it. */
async function examinePrivileges(
  database: Database,
  { role, database: name }: Facts,
  pipelines: readonly Pipeline[],
): Promise<Finding[]> {
  const lacking: string[] = [];
  const grants = grantsFor(role, name, pipelines);
  for (const grant of grants) {
    for (const { kind, object, privilege } of privilegesIn(grant)) {
      const [row] = await database.query<{ has: boolean | null }>(`SELECT ${HAS[kind]} AS has`, [object, privilege]);
      // NULL: the object is not there, which the pipeline's own check says.
      if (row?.has === false) lacking.push(grant);
    }
  }
  const missing = [...new Set(lacking)];
  if (missing.length === 0) return [fine(`${role} has the ${grants.length} grants that a worker needs`)];
  return missing.map((grant) => wrong(`${role} lacks a privilege`, grant));
}

interface Privilege {
  readonly kind: keyof typeof HAS;
  readonly object: string;
  readonly privilege: string;
}

const HAS = {
  DATABASE: 'pg_catalog.has_database_privilege(pg_catalog.btrim($1, $$"$$), $2)',
  FUNCTION: 'pg_catalog.has_function_privilege(pg_catalog.to_regprocedure($1), $2)',
  SCHEMA: 'pg_catalog.has_schema_privilege(pg_catalog.to_regnamespace($1), $2)',
  TABLE: 'pg_catalog.has_table_privilege(pg_catalog.to_regclass($1), $2)',
} as const;

/** A GRANT of {@link grantsFor}, taken apart: a list of tables has only the ledger's, whose names hold no comma. */
function privilegesIn(grant: string): Privilege[] {
  const [, privileges = '', kind = 'TABLE', objects = ''] =
    /^GRANT (.+?) ON (?:(DATABASE|SCHEMA|FUNCTION) )?(.+) TO /s.exec(grant) ?? [];
  const list = kind === 'TABLE' && objects.startsWith('repave.') ? objects.split(', ') : [objects];
  return list.flatMap((object) =>
    privileges.split(', ').map((privilege) => ({ kind: kind as Privilege['kind'], object, privilege })),
  );
}
