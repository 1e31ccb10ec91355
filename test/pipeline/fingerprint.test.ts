import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { typescriptFingerprint } from '../../src/pipeline/fingerprint.js';
import type { SqlPipeline } from '../../src/pipeline/pipeline.js';
import { readSqlPipeline } from '../../src/pipeline/read-sql-pipeline.js';

const fixtures = new URL('../fixtures/pipelines/', import.meta.url);

const read = (content: string): Promise<SqlPipeline> =>
  readSqlPipeline({ name: 'p', path: '/project/pipelines/p.sql', shown: 'pipelines/p.sql' }, content);

const header = ['repave', 'target: t', 'partition: { column: d, by: day }'];

const fingerprint = async (query: string, ...settings: string[]): Promise<string> =>
  (await read([...header, ...settings].map((line) => `-- ${line}\n`).join('') + query)).fingerprint;

/** With these lines in the place of the usual header. */
const withHeader = async (...lines: string[]): Promise<string> =>
  (await read(`${['repave', ...lines].map((line) => `-- ${line}\n`).join('')}SELECT 1`)).fingerprint;

describe('fingerprint of SQL: what counts', () => {
  const pairs: [string, string][] = [
    ['SELECT a FROM s WHERE x = 1', 'SELECT a FROM s WHERE x = 2'],
    ["SELECT a FROM s WHERE x = 'acme'", "SELECT a FROM s WHERE x = 'other'"],
    ['SELECT a FROM s WHERE x IN (1,2)', 'SELECT a FROM s WHERE x IN (1,2,3,4)'],
    ['SELECT a FROM s', 'SELECT a AS z FROM s'],
    ['SELECT a,b FROM s', 'SELECT b,a FROM s'],
    ['SELECT a FROM s LIMIT 10', 'SELECT a FROM s LIMIT 1000'],
    ['SELECT "A" FROM s', 'SELECT a FROM s'],
    ["SELECT 'A'", "SELECT 'a'"],
    ["SELECT 'a b'", "SELECT 'a  b'"],
    ['SELECT $$a -- b$$', 'SELECT $$a$$'],
    ['SELECT :date', 'SELECT :end_date'],
    ['SELECT a - 1 FROM s', 'SELECT a FROM s --1'],
    ['SELECT 1', "SELECT '1'"],
  ];
  for (const [one, other] of pairs) {
    it(`${one} / ${other}`, async () => assert.notEqual(await fingerprint(one), await fingerprint(other)));
  }

  const settings: [string, string[], string[]][] = [
    ['target', ['target: t', header[2] ?? ''], ['target: u', header[2] ?? '']],
    ['schema', ['target: t', header[2] ?? ''], ['target: public.t', header[2] ?? '']],
    ['column', ['target: t', 'partition: { column: d, by: day }'], ['target: t', 'partition: { column: e, by: day }']],
    ['unit', ['target: t', 'partition: { column: d, by: day }'], ['target: t', 'partition: { column: d, by: week }']],
    [
      'zone',
      ['target: t', 'partition: { column: d, by: day }'],
      ['target: t', 'partition: { column: d, by: day, zone: Asia/Kolkata }'],
    ],
  ];
  for (const [what, one, other] of settings) {
    it(what, async () => assert.notEqual(await withHeader(...one), await withHeader(...other)));
  }

  it('source and scope, each value of it, but not their order', async () => {
    const prints = await Promise.all(
      [
        [],
        ['source: SHOP_URL'],
        ['source: OTHER_URL'],
        ['scope: { tenant: acme }'],
        ['scope: { tenant: other }'],
        ['scope: { shop: acme }'],
        ['scope: { tenant: acme, shop: 7 }'],
        ['source: SHOP_URL', 'scope: { tenant: acme }'],
      ].map((lines) => fingerprint('SELECT 1', ...lines)),
    );
    assert.equal(new Set(prints).size, prints.length);
    assert.equal(
      await fingerprint('SELECT 1', 'scope: { tenant: acme, shop: 7 }'),
      await fingerprint('SELECT 1', 'scope: { shop: "7", tenant: acme }'),
    );
  });

  it('version', async () => {
    const plain = await fingerprint('SELECT 1');
    const [one, ten] = [await fingerprint('SELECT 1', 'version: 1.1'), await fingerprint('SELECT 1', 'version: 1.10')];
    assert.equal(new Set([plain, one, ten]).size, 3);
  });
});

describe('fingerprint of SQL: what does not count', () => {
  const same: [string, string][] = [
    ['SELECT a, b FROM s', 'select  A ,\n\tB\nfrom S;'],
    ['SELECT a FROM s', '/* x /* y */ */ SELECT a -- z\nFROM s; -- end'],
    ['SELECT a FROM s WHERE d>=:date', 'SELECT a FROM s WHERE d >= :DATE'],
    ['SELECT a=-1 FROM s', 'SELECT a = - 1 FROM s'],
  ];
  for (const [one, other] of same) {
    it(`${JSON.stringify(one)} / ${JSON.stringify(other)}`, async () =>
      assert.equal(await fingerprint(one), await fingerprint(other)));
  }

  it('checks, concurrency, retry, timeout, lookback, start, allowEmpty, database and how it is filled', async () => {
    const others = [
      'checks: [{ rows: { min: 1 } }]',
      'concurrency: 2',
      'retry: { attempts: 9 }',
      'timeout: 5m',
      'lookback: 1',
      'start: 2024-01-01',
      'allowEmpty: false',
      'database: OTHER_URL',
      'skipUnchanged: true',
      'create: true',
      'batch: 7',
      'formerly: other',
      'ready: SELECT true',
    ];
    assert.equal(await fingerprint('SELECT 1'), await fingerprint('SELECT 1', ...others));
  });

  it('UTC, said or not', async () => {
    assert.equal(
      await withHeader('target: t', 'partition: { column: d, by: day }'),
      await withHeader('target: t', 'partition: { column: d, by: day, zone: UTC }'),
    );
  });

  it('what formatters make of the file, header and all', async () => {
    const names = readdirSync(new URL('layouts/', fixtures));
    assert.ok(names.length >= 8);
    const written = await read(readFileSync(new URL('layouts/written.sql', fixtures), 'utf8'));
    for (const name of names) {
      const { query, ...pipeline } = await read(readFileSync(new URL(`layouts/${name}`, fixtures), 'utf8'));
      const { query: writtenQuery, ...expected } = written;
      assert.deepEqual(pipeline, expected, name);
      assert.deepEqual(query.parameters, writtenQuery.parameters, name);
    }
  });
});

describe('fingerprint: stored values', () => {
  const stored = JSON.parse(readFileSync(new URL('fingerprints.json', fixtures), 'utf8')) as {
    sql: Record<string, string>;
    typescript: string;
    typescriptVersion: string;
  };

  it('are given by the same SQL files for ever', async () => {
    for (const [content, expected] of Object.entries(stored.sql))
      assert.equal((await read(content)).fingerprint, expected);
    assert.ok(Object.keys(stored.sql).length >= 3);
  });

  it('are given by the same code for ever', () => {
    const settings = {
      target: { table: 't' },
      partition: { column: 'd', by: 'day', zone: 'UTC' },
      columns: ['d'],
    } as const;
    const sources = new Map([
      ['p.ts', 'export default 1;\n'],
      ['../lib/a.ts', 'export const a = 1;\n'],
    ]);
    assert.equal(typescriptFingerprint(settings, sources), stored.typescript);
    assert.equal(typescriptFingerprint({ ...settings, version: '2' }, sources), stored.typescriptVersion);
    const reversed = new Map([...sources].reverse().map(([path, text]) => [path, text.replaceAll('\n', '\r\n')]));
    assert.equal(typescriptFingerprint(settings, reversed), stored.typescript);
  });
});
