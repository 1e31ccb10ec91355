import { Failure } from '../failure.js';
import type { SqlPipeline } from '../pipeline/pipeline.js';
import { queryColumns, selectedAt } from '../pipeline/query-columns.js';
import type { Database } from './database.js';
import { describeSource } from './describe-source.js';
import { toFailure } from './errors.js';
import { lookOnly } from './look-only.js';
import { PARTITION_TYPES } from './partition-type.js';
import type { Session } from './session.js';
import { readSourceColumns, type SourceColumn } from './source-columns.js';

/**
 * `CREATE TABLE` for a pipeline's target, of its query's columns with their types, the partition column NOT NULL and indexed.
 * The target need not be there; nothing is made. `source` is where the query of a pipeline with a `source` runs.
 *
 * Throws what the server says of the query, and `InvalidPipeline` where its columns make no table that could be filled.
 */
export async function queryDdl(database: Database, pipeline: SqlPipeline, source?: Database): Promise<string> {
  const elsewhere = source && (await describeSource(source, pipeline));
  return lookOnly(database, 'repave check', pipeline.partition.zone, async (session) => {
    const columns = elsewhere ?? (await readSourceColumns(session, pipeline.query.text));
    refuseUnfit(pipeline, columns);
    return statements(session, pipeline, columns);
  }).catch((error: unknown) => {
    throw toFailure(error, { beforeRows: true });
  });
}

function refuseUnfit({ name, partition }: SqlPipeline, columns: readonly SourceColumn[]): void {
  const found = columns.find((column) => column.name === partition.column);
  const has = columns.map((column) => `${column.name} ${column.type}`).join(', ');
  if (!found) {
    throw new Failure(
      'InvalidPipeline',
      `The query of ${name} gives no column ${JSON.stringify(partition.column)}, by which it is partitioned. It gives: ${has}. Name it with AS.`,
    );
  }
  if (!PARTITION_TYPES.some((type) => type === found.typeName)) {
    throw new Failure(
      'InvalidPipeline',
      `The query of ${name} gives its partition column ${JSON.stringify(partition.column)} as ${found.type}: expected date, timestamp or timestamptz. Cast it, such as CAST(… AS date).`,
    );
  }
  const twice = columns.find((column, i) => columns.findIndex((other) => other.name === column.name) !== i);
  if (twice) {
    throw new Failure('InvalidPipeline', `The query of ${name} gives the column ${JSON.stringify(twice.name)} twice.`);
  }
}

async function statements(
  session: Session,
  { target, partition, query }: SqlPipeline,
  columns: readonly SourceColumn[],
): Promise<string> {
  const names = [target.schema ?? '', target.table, partition.column, ...columns.map(({ name }) => name)];
  const quotedNames = await session.rows<{ name: string }>(
    `SELECT pg_catalog.quote_ident(given) AS name FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS n(given, place) ORDER BY place`,
    [names],
  );
  const [schema = '', table = '', partitionColumn = '', ...own] = quotedNames.map(({ name }) => name);
  const full = target.schema === undefined ? table : `${schema}.${table}`;
  const selected = await queryColumns(query.text);
  const lines = columns.map(({ name, type }, i) => {
    const literal = selectedAt(selected, i, columns.length, name)?.literal !== undefined;
    const comma = i < columns.length - 1 ? ',' : '';
    const notNull = name === partition.column ? ' NOT NULL' : '';
    return `  ${own[i] ?? ''} ${type}${notNull}${comma}${literal ? ' -- a bare text or NULL in the query: say the type that is meant' : ''}`;
  });
  return `CREATE TABLE ${full} (\n${lines.join('\n')}\n);\nCREATE INDEX ON ${full} (${partitionColumn});`;
}
