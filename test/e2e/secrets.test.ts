import assert from 'node:assert/strict';
import { BackfillFailed, type BackfillHandle } from '../../src/client.js';
import type { FailureType } from '../../src/contract.js';
import type { WorkerProcess } from '../support/worker.js';
import { Installation } from '../chaos/installation.js';
import { until } from '../chaos/until.js';
import { progressOf } from './progress-of.js';

const KEY = '2024-03-01';
/** In every column but the partition's, of the sources and of the rows that stand. */
const MARKER = 'geheim-5f0c';

interface Case {
  /** How the fill ends. */
  readonly ends: FailureType | 'filled';
  /** The target's definition, `note` included. */
  readonly columns: string;
  /** More SQL about the target `$`. */
  readonly sql?: string;
  readonly header?: string;
  /** The query, or the body of `rows()`. */
  readonly query?: string;
  readonly rows?: string;
}

const SELECT = 'SELECT day, note FROM source WHERE day >= :date AND day < :end_date';
const YIELD = `yield { day: key, note: '${MARKER}' };`;
const TRIGGER = (body: string): string => `
  CREATE FUNCTION $_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN ${body} RETURN NEW; END';
  CREATE TRIGGER $_trigger AFTER INSERT ON $ FOR EACH ROW EXECUTE FUNCTION $_trigger();`;

const CASES: Readonly<Record<string, Case>> = {
  stored: { ends: 'filled', columns: 'note text', query: SELECT },
  copied: { ends: 'filled', columns: 'note text', rows: YIELD },
  a_check: { ends: 'DataError', columns: 'note text CHECK (length(note) < 3)', query: SELECT },
  a_null: {
    ends: 'DataError',
    columns: 'note text, n int NOT NULL',
    query: 'SELECT day, note, nullif(1, 1) AS n FROM source',
  },
  a_unique_index: { ends: 'DataError', columns: 'note text UNIQUE', query: `${SELECT} UNION ALL ${SELECT}` },
  a_foreign_key: { ends: 'DataError', columns: 'note text REFERENCES known', query: SELECT },
  too_long: { ends: 'DataError', columns: 'note varchar(3)', query: SELECT },
  a_cast: { ends: 'DataError', columns: 'note int', query: 'SELECT day, note::int AS note FROM source' },
  raised: { ends: 'DataError', columns: 'note text', query: SELECT, sql: TRIGGER(`RAISE EXCEPTION ''%'', NEW.note;`) },
  raised_with_names: {
    ends: 'DataError',
    columns: 'note text',
    query: SELECT,
    sql: TRIGGER(
      `RAISE ''%'', NEW.note USING ERRCODE = ''23514'', CONSTRAINT = NEW.note, COLUMN = NEW.note, TABLE = NEW.note, DETAIL = NEW.note, HINT = NEW.note;`,
    ),
  },
  checked_twice: {
    ends: 'CheckFailed',
    columns: 'note text',
    header: '-- checks: [{ unique: [note] }]\n',
    query: `${SELECT} UNION ALL ${SELECT}`,
  },
  outside: { ends: 'RowsOutsideWindow', columns: 'note text', query: 'SELECT day + 1 AS day, note FROM source' },
  division: {
    ends: 'DataError',
    columns: 'note text',
    query: `${SELECT} AND length(note) / (length(note) - ${MARKER.length}) > 0`,
  },
  copied_badly: { ends: 'DataError', columns: 'note int', rows: YIELD },
  copied_too_long: { ends: 'DataError', columns: 'note varchar(3)', rows: YIELD },
  not_a_row: { ends: 'DataError', columns: 'note text', rows: `yield '${MARKER}';` },
  an_object: { ends: 'DataError', columns: 'note int', rows: `yield { day: key, note: { secret: '${MARKER}' } };` },
  thrown: {
    ends: 'SourceFailed',
    columns: 'note text',
    rows: `${YIELD} throw new Error('${MARKER}', { cause: new Error('${MARKER}') });`,
  },
  thrown_with_fields: {
    ends: 'SourceFailed',
    columns: 'note text',
    rows: `${YIELD} throw Object.assign(new Error('x'), { code: '${MARKER}', type: '${MARKER}', name: 'E' });`,
  },
  thrown_text: { ends: 'SourceFailed', columns: 'note text', rows: `${YIELD} throw '${MARKER}';` },
};

describe('values of rows, and passwords', function () {
  this.timeout(300_000);
  let installation: Installation;
  let worker: WorkerProcess;
  const handles = new Map<string, BackfillHandle>();
  const told: unknown[] = [];

  before(async () => {
    installation = await Installation.open({
      pipelines: Object.fromEntries(Object.entries(CASES).map(([name, described]) => file(name, described))),
      tables: `
        CREATE TABLE source (day date NOT NULL, note text NOT NULL);
        INSERT INTO source VALUES ('${KEY}', '${MARKER}');
        CREATE TABLE known (note text PRIMARY KEY);
        ${Object.entries(CASES)
          .map(
            ([name, { columns, sql = '' }]) =>
              `CREATE TABLE ${name} (day date NOT NULL, ${columns}); ${sql.replaceAll('$', name)}`,
          )
          .join('\n')}`,
    });
    worker = await installation.startWorker();
    for (const name of Object.keys(CASES)) {
      handles.set(name, await installation.client.backfill({ pipeline: name, from: KEY, to: KEY }));
    }
  });
  after(() => installation.close());

  for (const [name, { ends }] of Object.entries(CASES)) {
    it(`${name}: ends as ${ends}, and says no value`, async () => {
      const handle = handles.get(name);
      assert.ok(handle);
      const end = await handle.result().then(
        ({ filled }) => ({ filled }),
        (error: unknown) => {
          assert.ok(error instanceof BackfillFailed, String(error));
          return { type: error.result?.failures[0]?.type, all: [error.message, error.result] };
        },
      );
      assert.deepEqual('filled' in end ? 'filled' : end.type, ends, JSON.stringify(end));
      told.push(end, await until('its progress', () => progressOf(handle)));
      refuseSecrets('what the caller is told', JSON.stringify(end));
      for (const [id, run] of [[handle.id, handle.runId], [`${name}/${KEY}`]]) {
        const { events } = await installation.temporal.workflow.getHandle(id ?? '', run).fetchHistory();
        const text = readable(events);
        assert.ok(text.includes('giveUpAfterMs'), 'the payloads are decoded');
        refuseSecrets(`the history of ${id}`, text);
      }
    });
  }

  it('are in no log of the worker, at its most talkative', () => {
    assert.ok(worker.log().includes('"level":"debug"'));
    refuseSecrets('the log', worker.log());
  });

  it('are in no table of the ledger', async () => {
    const tables = await installation.database.sql<{ name: string }>(
      `SELECT format('repave.%I', relname) AS name FROM pg_class WHERE relnamespace = 'repave'::regnamespace AND relkind = 'r'`,
    );
    assert.ok(tables.length > 5);
    for (const { name } of tables) {
      const rows = await installation.database.sql(`SELECT to_jsonb(t)::text AS row FROM ${name} t`);
      refuseSecrets(name, JSON.stringify(rows));
    }
  });

  it('were there to be told', async () => {
    const notes = await installation.database.sql(
      'SELECT note FROM stored UNION ALL SELECT note FROM copied UNION ALL SELECT note FROM source',
    );
    assert.deepEqual(notes, [{ note: MARKER }, { note: MARKER }, { note: MARKER }]);
    assert.equal(told.length, 2 * Object.keys(CASES).length);
  });

  function refuseSecrets(place: string, text: string): void {
    for (const secret of [MARKER, new URL(installation.database.url).password]) {
      const at = text.indexOf(secret);
      assert.ok(at < 0, `${place} holds a secret: …${text.slice(Math.max(0, at - 200), at + 50)}…`);
    }
  }
});

/** A pipeline's file. */
function file(name: string, { header = '', query, rows }: Case): [string, string] {
  if (query)
    return [
      `${name}.sql`,
      `-- repave\n-- target: ${name}\n-- partition: { column: day, by: day }\n${header}${query}\n`,
    ];
  return [
    `${name}.ts`,
    `import { definePipeline } from 'repave';
     export default definePipeline({
       target: '${name}',
       partition: { column: 'day', by: 'day' },
       retry: { attempts: 1 },
       async *rows({ key }) { ${rows} },
     });`,
  ];
}

/** A history as text, its payloads decoded: as JSON they are base64. */
function readable(value: unknown): string {
  return JSON.stringify(value, (name, field: unknown) =>
    name === 'data' && typeof field === 'string' ? Buffer.from(field, 'base64').toString('utf8') : field,
  );
}
