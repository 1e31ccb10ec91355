import { Failure } from '../failure.js';
import { quoted } from './identifier.js';
import { type PipelineWarning, setting } from './pipeline-problem.js';
import type { Session } from './session.js';
import type { WindowCondition } from './window-condition.js';

/** How the server would find a window's old rows. */
export interface DeletePlan {
  /** Tables that it would look into: the target, or those of its parts that the window touches. */
  readonly tables: readonly DeleteScan[];
}

export interface DeleteScan {
  /** With its schema, quoted where needed. */
  readonly table: string;
  /** The indexes used; none: it reads the whole table. */
  readonly indexes: readonly string[];
  /** Of 8 kB, by the table's size now. */
  readonly pages: number;
  /** Whether all rows that the table can hold are the window's, so that to read it whole is right. */
  readonly all: boolean;
}

interface PlanNode {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly Schema?: string;
  readonly 'Index Name'?: string;
  readonly 'Plan Rows'?: number;
  readonly Plans?: readonly PlanNode[];
}

/** Pages up to which a table is read as fast as an index: 1 MB. */
const SMALL_PAGES = 128;
/** The part of a table's rows from which to read it whole is right. */
const MOST_ROWS = 0.5;

/**
 * Asks the server to plan the DELETE of a window, by its own bounds, and says what it would read. Nothing is deleted. Rejects
 * with the server's error, such as where the role may not DELETE.
 */
export async function planDelete(session: Session, window: WindowCondition): Promise<DeletePlan> {
  const [explained] = await session.rows<{ 'QUERY PLAN': readonly { Plan: PlanNode }[] }>(
    `EXPLAIN (FORMAT JSON, VERBOSE) DELETE FROM ${window.table} WHERE ${window.condition}`,
    window.values,
  );
  const plan = explained?.['QUERY PLAN'][0]?.Plan;
  if (!plan) throw new Failure('Unexpected', 'EXPLAIN gave no plan.');
  const tables: DeleteScan[] = [];
  for (const scan of scansIn(plan)) tables.push(await examineScan(session, window, scan));
  return { tables };
}

/** A warning where a window's old rows are found by reading a table that is not small. */
export function deleteWarning({ tables }: DeletePlan, column: string): PipelineWarning | undefined {
  const slow = tables.find(({ indexes, pages, all }) => indexes.length === 0 && pages > SMALL_PAGES && !all);
  if (!slow) return undefined;
  const { table, pages } = slow;
  return {
    message:
      `To delete a partition’s old rows the server reads all of ${table} (${sizeText(pages)}), once a fill. ` +
      `An index that begins with ${JSON.stringify(column)} spares it: CREATE INDEX CONCURRENTLY ON ${table} (${quoted(column)}). If there is one, ANALYZE the table.`,
    place: setting('target'),
  };
}

function sizeText(pages: number): string {
  const megabytes = pages / 128;
  return megabytes < 1024 ? `${Math.round(megabytes)} MB` : `${Math.round(megabytes / 1024)} GB`;
}

interface Scan {
  readonly schema: string;
  readonly table: string;
  readonly indexes: readonly string[];
  readonly rows: number;
}

/** The nodes that read a table, each with the indexes below it. */
function scansIn(node: PlanNode): Scan[] {
  const below = node.Plans ?? [];
  if (node['Node Type'] === 'ModifyTable' || node['Relation Name'] === undefined) return below.flatMap(scansIn);
  const indexes = [node, ...below.flatMap(flattened)].map((part) => part['Index Name']);
  return [
    {
      schema: node.Schema ?? '',
      table: node['Relation Name'],
      indexes: [...new Set(indexes.filter((name) => name !== undefined))],
      rows: node['Plan Rows'] ?? 0,
    },
  ];
}

function flattened(node: PlanNode): PlanNode[] {
  return [node, ...(node.Plans ?? []).flatMap(flattened)];
}

async function examineScan(session: Session, window: WindowCondition, scan: Scan): Promise<DeleteScan> {
  const { schema, table, indexes, rows } = scan;
  const [facts] = await session.rows<{ name: string; pages: number; rows: number }>(
    `SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS name, c.reltuples::pg_catalog.float8 AS rows,
            (pg_catalog.pg_relation_size(c.oid) / 8192)::pg_catalog.float8 AS pages
       FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = $1 AND c.relname = $2`,
    [schema, table],
  );
  if (!facts) throw new Failure('Unexpected', 'EXPLAIN named a table that is not in the catalog.');
  const all =
    indexes.length === 0 &&
    ((facts.rows > 0 && rows >= facts.rows * MOST_ROWS) || (await holdsOnly(session, window, facts.name)));
  return { table: facts.name, indexes, pages: facts.pages, all };
}

/** Whether the table's own constraint, such as a part's bounds, lets in rows of the window alone: then no other need be read. */
async function holdsOnly(session: Session, window: WindowCondition, table: string): Promise<boolean> {
  await session.query(`SELECT pg_catalog.set_config('constraint_exclusion', 'on', true)`);
  const [explained] = await session.rows<{ 'QUERY PLAN': readonly { Plan: PlanNode }[] }>(
    `EXPLAIN (FORMAT JSON) SELECT FROM ${table} WHERE NOT (${window.time})`,
    window.values.slice(0, 2),
  );
  const plan = explained?.['QUERY PLAN'][0]?.Plan;
  return plan !== undefined && flattened(plan).every((node) => node['Relation Name'] === undefined);
}
