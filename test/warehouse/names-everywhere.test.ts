import assert from 'node:assert/strict';
import { bindParameters } from '../../src/pipeline/bind-parameters.js';
import type { Check, Pipeline } from '../../src/pipeline/pipeline.js';
import { sqlTokens } from '../../src/pipeline/sql-tokens.js';
import { type Database, openDatabase } from '../../src/warehouse/database.js';
import { describePipeline } from '../../src/warehouse/describe.js';
import { fill } from '../../src/warehouse/fill.js';
import { registerPipeline } from '../../src/warehouse/ledger.js';
import { grantsFor } from '../../src/warehouse/migrate.js';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { emptyDatabase } from '../support/empty-database.js';
import { failsAs, fillRequest, KEY, sqlPipeline, typescriptPipeline } from '../support/fill.js';
import { id, NAMES } from '../support/names.js';
import { relayPipeline } from '../support/source-database.js';
import { asSuperuser } from '../support/superuser.js';

/** A tenant's name that would end a statement, and a column of another name for it. */
const TENANT = `it's "; DROP TABLE canary; -- \\ $1 :date`;
const TENANTS = `tenant's "x"`;
const KIND = `The "kind"`;
const LABEL = `o'clock\\ "`;

const literal = (text: string): string => `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;

/** A query within a setting, as its file would have it. */
const query = (text: string, counted?: readonly 'date'[]) => bindParameters(text, sqlTokens(text), 'day', counted);

describe('names and values that would end a statement', () => {
  let test: TestDatabase;
  let remote: TestDatabase;
  let database: Database;
  let source: Database;

  before(async () => {
    [test, remote] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    [database, source] = await Promise.all([
      openDatabase(test.url, { fills: 2 }),
      openDatabase(remote.url, { fills: 2 }),
    ]);
    await remote.sql(`CREATE TYPE ${id(KIND)} AS ENUM (${literal(LABEL)})`);
  });
  after(async () => {
    await Promise.all([database.close(), source.close()]);
    await Promise.all([test.drop(), remote.drop()]);
  });

  for (const [what, [schema, table, column, other]] of Object.entries(NAMES)) {
    it(`do no harm in any supply, scope, check or part of a table: ${what}`, async () => {
      const full = `${id(schema)}.${id(table)}`;
      await emptyDatabase(test);
      await asSuperuser(
        test,
        `CREATE TABLE public.canary (n int);
         CREATE SCHEMA ${id(schema)}; GRANT ALL ON SCHEMA ${id(schema)}, public TO ${test.workerRole};
         CREATE TYPE public.${id(KIND)} AS ENUM (${literal(LABEL)}); SET ROLE ${test.workerRole}; SET search_path = public;
         CREATE TABLE ${full} (${id(column)} date NOT NULL, ${id(other)} int, ${id(TENANTS)} text, ${id(KIND)} ${id(KIND)}) PARTITION BY RANGE (${id(column)});`,
      );
      const rows = `SELECT :date::date AS ${id(column)}, k AS ${id(other)}, ${literal(TENANT)} AS ${id(TENANTS)},
                           ${literal(LABEL)}::${id(KIND)} AS ${id(KIND)} FROM generate_series(1, 3) k`;
      const checks: readonly Check[] = [
        { kind: 'unique', columns: [column, other] },
        { kind: 'not_null', columns: [other, TENANTS] },
        { kind: 'accepted', column: TENANTS, values: [TENANT] },
        { kind: 'accepted', column: KIND, values: [LABEL] },
        { kind: 'range', column: other, min: '1', max: '3' },
        {
          kind: 'sql',
          query: query(`SELECT 1 FROM ${full} WHERE ${id(TENANTS)} <> ${literal(TENANT)} AND ${id(column)} = :date`),
          name: TENANT,
        },
      ];
      const sum: Check = {
        kind: 'sum',
        column: other,
        equals: query(`SELECT sum(k) FROM generate_series(1, 3) k WHERE :date IS NOT NULL`, ['date']),
      };
      const settings = {
        name: TENANT,
        target: { schema, table },
        partition: { column, by: 'day', zone: 'UTC' },
        scope: { [TENANTS]: TENANT },
        skipUnchanged: true,
        create: true,
        checks,
      } as const;
      const yielded = [1, 2, 3].map((n) => ({ [other]: n, [column]: KEY, [KIND]: LABEL, [TENANTS]: TENANT }));
      const typescript = typescriptPipeline(() => yielded, settings);
      const pipelines: readonly Pipeline[] = [
        sqlPipeline(rows, { ...settings, checks: [...checks, sum] }),
        relayPipeline(rows, { ...settings, checks: [...checks, sum] }),
        typescript,
        { ...typescript, stage: false },
      ];
      for (const grant of grantsFor(test.workerRole, test.name, [typescript])) await asSuperuser(test, grant);
      for (const [place, pipeline] of pipelines.entries()) {
        const relayed = pipeline.kind === 'sql' && pipeline.source !== undefined ? { source } : {};
        await registerPipeline(database, pipeline);
        assert.deepEqual((await describePipeline(database, pipeline, relayed.source)).problems, []);
        const first = await fill(database, { ...fillRequest(pipeline), ...relayed });
        const again = await fill(database, { ...fillRequest(pipeline), ...relayed });
        assert.deepEqual([first.rows, again.rows, first.unchanged ?? false, again.unchanged], [3, 3, place > 0, true]);
      }
      const wrong: Pipeline = {
        ...sqlPipeline(rows, settings),
        checks: [{ kind: 'accepted', column: TENANTS, values: ['other'] }],
        skipUnchanged: false,
      };
      await failsAs(fill(database, fillRequest(wrong)), 'CheckFailed');
      const elsewhere = sqlPipeline(rows.replace(':date::date', ':date::date - 1'), { ...settings, create: false });
      await failsAs(fill(database, fillRequest(elsewhere)), 'DataError');

      assert.deepEqual(
        await asSuperuser(
          test,
          `SELECT count(*)::int AS rows, count(DISTINCT ${id(other)})::int AS numbers, min(${id(TENANTS)}) AS tenant, min(${id(KIND)})::text AS kind FROM ${full}`,
        ),
        [{ rows: 3, numbers: 3, tenant: TENANT, kind: LABEL }],
      );
      assert.deepEqual(await asSuperuser(test, 'SELECT FROM public.canary'), []);
    });
  }
});
