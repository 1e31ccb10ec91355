import { bindParameters } from './bind-parameters.js';
import { sqlFingerprint } from './fingerprint.js';
import { type FileToRead, invalidPipeline } from './invalid-pipeline.js';
import { judgeQuery } from './judge-query.js';
import type { SqlPipeline } from './pipeline.js';
import { readSqlFile } from './sql-header.js';
import { sqlTokens } from './sql-tokens.js';

/**
 * Reads and checks a SQL pipeline from its file's content. Throws `InvalidPipeline` with the file, the line and what is
 * wrong. Whether the database has the tables and columns is for the database to say.
 */
export async function readSqlPipeline(file: FileToRead, content: string): Promise<SqlPipeline> {
  const { settings, query: text, queryLine } = readSqlFile(file, content);
  const tokens = sqlTokens(text);
  const query = bindParameters({ file, text, line: queryLine, tokens }, settings.partition.by);
  const problem = await judgeQuery(query.text, settings.target);
  if (problem) {
    const blank = text.length - text.trimStart().length;
    const firstLine = queryLine + text.slice(0, blank).split('\n').length - 1;
    throw invalidPipeline(file, problem.line === undefined ? firstLine : firstLine + problem.line - 1, problem.message);
  }
  return Object.freeze({
    ...settings,
    kind: 'sql',
    name: file.name,
    file: file.path,
    query,
    fingerprint: sqlFingerprint(settings, tokens),
  });
}
