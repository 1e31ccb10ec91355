import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { createTestDatabase, type TestDatabase } from '../support/database.js';
import { asSuperuser } from '../support/superuser.js';
import { testTemporal } from '../support/temporal.js';
import { document, makeProject, repave } from './repave.js';

interface Finding {
  readonly state: 'fine' | 'unsure' | 'wrong';
  readonly text: string;
  readonly advice?: string;
  readonly unreachable?: boolean;
}

const HEADER = 'partition: { column: day, by: day }';
const FILES = {
  'pipelines/plain.sql': `-- repave\n-- target: plain\n-- ${HEADER}\nSELECT day, n FROM sales WHERE day = :date\n`,
  'pipelines/skipping.sql': `-- repave\n-- target: skipping\n-- ${HEADER}\n-- skipUnchanged: true\nSELECT :date AS day, 1 AS n\n`,
  'pipelines/parted.sql': `-- repave\n-- target: parted\n-- ${HEADER}\n-- create: true\nSELECT :date AS day, 1 AS n\n`,
  'pipelines/relayed.sql': `-- repave\n-- target: relayed\n-- ${HEADER}\n-- source: SHOP_URL\nSELECT day, n FROM orders WHERE day = :date\n`,
};

describe('repave doctor', function () {
  this.timeout(600_000);
  /** Owns one table, and nothing else here. */
  const owner = `test_owner_${randomBytes(6).toString('hex')}`;
  let project: string;
  let temporal: string;
  let database: TestDatabase;
  let shop: TestDatabase;

  before(async () => {
    project = makeProject(FILES);
    temporal = (await testTemporal()).address;
    [database, shop] = await Promise.all([createTestDatabase(), createTestDatabase({ ledger: false })]);
    await database.sql(`CREATE TABLE sales (day date, n int); CREATE TABLE plain (day date NOT NULL, n int);
      CREATE TABLE skipping (LIKE plain); CREATE TABLE relayed (LIKE plain);
      CREATE TABLE parted (day date NOT NULL, n int) PARTITION BY RANGE (day)`);
    await shop.sql('CREATE TABLE orders (day date, n int)');
  });
  after(async () => {
    await Promise.all([database.drop(), shop.drop()]);
    rmSync(project, { recursive: true });
  });

  const examine = async (
    env: Readonly<Record<string, string>> = {},
  ): Promise<{ code: number | null; findings: Finding[] }> => {
    const ended = await repave(project, ['doctor', '--json', '--address', temporal], {
      DATABASE_URL: database.url,
      SHOP_URL: shop.url,
      ...env,
    });
    return { code: ended.code, findings: document<{ findings: Finding[] }>(ended).findings };
  };
  const wrong = (findings: readonly Finding[]) =>
    findings.filter(
      ({ state, text }) => state !== 'fine' && text !== 'no worker' && !text.startsWith('the search attributes'),
    );

  it('gives for each privilege that lacks the line to run, and is content once they were run', async () => {
    await asSuperuser(
      database,
      `CREATE ROLE ${owner}; ALTER TABLE parted OWNER TO ${owner}; REVOKE TEMP ON DATABASE ${database.name} FROM PUBLIC;
       REVOKE CREATE ON SCHEMA public FROM PUBLIC; GRANT SELECT, INSERT, DELETE ON parted TO ${database.workerRole};
       REVOKE SELECT ON sales FROM ${database.workerRole}; REVOKE INSERT ON plain FROM ${database.workerRole}`,
    );
    await asSuperuser(shop, `REVOKE SELECT ON orders FROM ${shop.workerRole}`);
    try {
      const { findings } = await examine();
      const advised = (pattern: RegExp): Finding => {
        const found = wrong(findings).find(({ advice }) => pattern.test(advice ?? ''));
        assert.ok(found, `${pattern} in ${JSON.stringify(wrong(findings), null, 1)}`);
        return found;
      };
      const worker = `"${database.workerRole}"`;
      const temp = advised(/^GRANT TEMP ON DATABASE/);
      const insert = advised(/^GRANT SELECT, INSERT, DELETE ON "plain"/);
      const own = advised(new RegExp(`^GRANT "?${owner}"? TO`));
      const create = advised(/^GRANT CREATE ON SCHEMA/);
      const reading = wrong(findings).filter(({ advice }) => advice?.includes('GRANT SELECT ON …'));
      assert.match(reading[0]?.text ?? '', /pipeline plain reads what .* permission denied for table sales/);
      assert.match(
        reading[1]?.text ?? '',
        /pipeline relayed reads what .* in SHOP_URL: .*permission denied for table orders/,
      );
      assert.equal(reading.length, 2);
      assert.match(reading[0]?.advice ?? '', new RegExp(`GRANT SELECT ON … TO ${worker};`));

      for (const { advice } of [temp, insert, own, create]) await asSuperuser(database, advice ?? '');
      await asSuperuser(database, `GRANT SELECT ON sales TO ${worker}`);
      await asSuperuser(shop, `GRANT SELECT ON orders TO ${worker}`);
      const after = await examine();
      assert.deepEqual(wrong(after.findings), []);
      const attributes = after.findings.find(({ text }) => text.startsWith('the search attributes'));
      assert.match(attributes?.advice ?? '', /^temporal operator search-attribute create --name RepavePipeline/);
      for (const name of ['plain', 'skipping', 'parted', 'relayed']) {
        assert.ok(
          after.findings.some(({ text }) => text === `pipeline ${name}, into public.${name}`),
          name,
        );
      }
      assert.ok(after.findings.some(({ text }) => /^source SHOP_URL: PostgreSQL .* read-only$/.test(text)));
      assert.ok(after.findings.some(({ text }) => text === 'time zones as the server knows them: UTC'));
      assert.equal(after.code, 1, 'no worker polls');
    } finally {
      await asSuperuser(database, `DROP OWNED BY ${owner} CASCADE; DROP ROLE ${owner}`);
      await database.sql('CREATE TABLE parted (day date NOT NULL, n int) PARTITION BY RANGE (day)');
    }
  });

  it('says which source cannot be reached, or is not named, and looks at all else', async () => {
    for (const [url, pattern] of [
      ['postgres://nobody@127.0.0.1:1/shop', /could not be made/],
      ['', /SHOP_URL is not set/],
    ] as const) {
      const { code, findings } = await examine({ SHOP_URL: url });
      assert.equal(code, url === '' ? 1 : 3);
      const source = wrong(findings).find(({ text }) => text === 'source (SHOP_URL)');
      assert.match(source?.advice ?? '', pattern);
      assert.ok(findings.some(({ text }) => text === 'pipeline plain, into public.plain'));
    }
  });

  it('shows a target that autovacuum would let grow, with what to run', async () => {
    await database.sql('ALTER TABLE plain SET (autovacuum_enabled = off)');
    const { findings } = await examine();
    const growing = findings.find(({ text }) => text.includes('pipeline plain: Autovacuum is off for public.plain'));
    assert.equal(growing?.state, 'unsure');
    await database.sql(growing?.advice ?? '');
    assert.ok((await examine()).findings.every(({ text }) => !text.includes('Autovacuum')));
  });
});
