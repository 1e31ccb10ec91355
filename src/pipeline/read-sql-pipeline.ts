import type { Granularity } from '../calendar/calendar.js';
import { bindParameters, UnboundQuery } from './bind-parameters.js';
import type { ExaminedPipeline } from './examined-pipeline.js';
import { sqlFingerprint } from './fingerprint.js';
import { type FileProblem, type FileToRead, refusal } from './invalid-pipeline.js';
import { judgeQuery } from './judge-query.js';
import { lineOfCharacter, type QueryProblem } from './parse-query.js';
import type { Query, SqlPipeline, TableName } from './pipeline.js';
import type { Place } from './place.js';
import { queryColumns, selectedAt } from './query-columns.js';
import type { ReadSqlSettings } from './settings.js';
import type { OwnQuery } from './row-versions.js';
import { readSqlFile, type SqlFile } from './sql-header.js';
import { type SqlToken, sqlTokens } from './sql-tokens.js';
import { readChanged, readChecks, readReady } from './written-query.js';

/** The unit by which a query is read whose header does not say one: it forbids no parameter. */
const ANY_UNIT: Granularity = 'day';

/**
 * Reads and checks a SQL pipeline from its file's content. Throws `InvalidPipeline` with the file, the line and what is
 * wrong first. Whether the database has the tables and columns is for the database to say.
 */
export async function readSqlPipeline(file: FileToRead, content: string): Promise<SqlPipeline> {
  const { problems, pipeline } = await examineSqlPipeline(file, content);
  if (problems.length > 0 || pipeline?.kind !== 'sql') throw refusal(file, problems);
  return pipeline;
}

/** Reads a SQL pipeline as far as it can be read, and finds all that is wrong with its file. */
export async function examineSqlPipeline(file: FileToRead, content: string): Promise<ExaminedPipeline> {
  const read = readSqlFile(content);
  if (read.query === undefined) return { file, problems: read.problems, lineOf: () => undefined };
  const tokens = sqlTokens(read.query);
  const { query, text, problems } = await readQuery(read, tokens);
  const { settings } = read;
  const found =
    settings && query ? await pipelineOf(file, settings, { written: read.query, tokens, query }) : undefined;
  const columns = await queryColumns(text);
  const lineInQuery = (line: number): number => line + queryStart(read) - 1;
  const lineOf = (place: Place): number | undefined => {
    switch (place.kind) {
      case 'setting':
        return read.lineOf(place.path);
      case 'check':
        return read.lineOf(found?.checkPaths[place.index] ?? ['checks']);
      case 'column':
        return lineInQuery(selectedAt(columns, place.index, place.of, place.name)?.line ?? columns.line);
      case 'select':
        return lineInQuery(columns.line);
      case 'query':
        return lineInQuery(lineOfCharacter(text, place.characters));
      default:
        return place satisfies never;
    }
  };
  const inSettings = (found?.problems ?? []).map(({ path, message }) => ({ line: read.lineOf(path), message }));
  return {
    file,
    problems: [...read.problems, ...problems, ...inSettings],
    pipeline: found?.pipeline,
    lineOf,
  };
}

/** The line of the file in which the query's bound text begins: it has no white space before it. */
function queryStart({ query = '', queryLine }: SqlFile): number {
  const blank = query.length - query.trimStart().length;
  return queryLine + query.slice(0, blank).split('\n').length - 1;
}

async function readQuery(
  read: SqlFile,
  tokens: readonly SqlToken[],
): Promise<{ readonly query?: Query; readonly text: string; readonly problems: readonly FileProblem[] }> {
  const { query: written = '', queryLine, settings } = read;
  const forbidden = settings && unreadable(settings);
  const inText = (first: number, { line = 1, message }: QueryProblem): FileProblem => ({
    line: first + line - 1,
    message,
  });
  let query: Query | undefined;
  let text: string | undefined;
  const problems: FileProblem[] = [];
  try {
    query = bindParameters(written, tokens, settings?.partition.by ?? ANY_UNIT);
    text = query.text;
  } catch (error) {
    if (!(error instanceof UnboundQuery)) throw error;
    problems.push(...error.problems.map((problem) => inText(queryLine, problem)));
    text = error.text;
  }
  if (text === undefined) return { text: '', problems };
  const judgement = await judgeQuery(text, forbidden);
  problems.push(...judgement.problems.map((problem) => inText(queryStart(read), problem)));
  return { query: judgement.isSelect ? query : undefined, text, problems };
}

/** The table that queries must not read: in another database the one of the target's name is another. */
function unreadable({ source, target }: ReadSqlSettings): TableName | undefined {
  return source === undefined ? target : undefined;
}

async function pipelineOf(file: FileToRead, settings: ReadSqlSettings, own: OwnQuery) {
  const { query, tokens } = own;
  const { by } = settings.partition;
  const { ready: written, changed: writtenChanged, checks: writtenChecks, ...rest } = settings;
  const { checks, paths, problems } = await readChecks(writtenChecks, { by, query });
  const asked = written && (await readReady(written, { by, query }));
  const version =
    writtenChanged === undefined ? undefined : await readChanged(writtenChanged, by, own, unreadable(settings));
  const pipeline: SqlPipeline = Object.freeze({
    ...rest,
    checks,
    ...(asked?.ready ? { ready: asked.ready } : {}),
    ...(version?.changed ? { changed: version.changed } : {}),
    kind: 'sql',
    name: file.name,
    file: file.path,
    query,
    fingerprint: sqlFingerprint(settings, tokens),
  });
  return {
    pipeline,
    checkPaths: paths,
    problems: [...problems, ...(asked?.problems ?? []), ...(version?.problems ?? [])],
  };
}
