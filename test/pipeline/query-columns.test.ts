import assert from 'node:assert/strict';
import { queryColumns, selectedAt } from '../../src/pipeline/query-columns.js';

describe('columns of a query, by its text', () => {
  const cases: [string, string[]][] = [
    ['SELECT a, s.b, "C d", 1 AS e, count(*) FROM s', ['1 a', '1 b', '1 C d', '1 e', '1 ?']],
    ['SELECT\n  a,\n  s.*,\n  *\nFROM s', ['2 a', '3 *', '4 *']],
    ["SELECT NULL AS x, 'it''s', (NULL), CAST(NULL AS int) AS y, -1", ["1 x =NULL", "1 ? ='it''s'", '1 ? =NULL', '1 y', '1 ?']],
    ['(SELECT NULL AS a,\n b)\nUNION ALL SELECT 1, 2', ['1 a', '2 b']],
    ['WITH q AS (\n SELECT 1 AS z\n)\nSELECT a\nFROM q', ['4 a']],
    ['VALUES (1, 2)', []],
    ['SELECT FROM s', []],
    ['SELECT ((', []],
    ['DELETE FROM s', []],
  ]; // prettier-ignore
  for (const [query, expected] of cases) {
    it(JSON.stringify(query), async () => {
      const { columns } = await queryColumns(query);
      const shown = columns.map(
        ({ name = '?', star, literal, line }) =>
          `${line} ${star ? '*' : name}${literal === undefined ? '' : ` =${literal}`}`,
      );
      assert.deepEqual(shown, expected);
    });
  }

  it('says the line of the SELECT itself, behind a WITH, a DISTINCT and comments', async () => {
    const lineOf = async (query: string): Promise<number> => (await queryColumns(query)).line;
    assert.equal(await lineOf('\n-- select\nSELECT\n  a FROM s'), 3);
    assert.equal(await lineOf('WITH q AS (SELECT 1)\nSELECT DISTINCT\n  a FROM q'), 2);
    assert.equal(await lineOf('VALUES (1)'), 1);
  });

  it('finds the entry behind a column of the result, around stars', async () => {
    const selected = await queryColumns('SELECT a,\ns.*,\nx,\nr.*,\ny FROM s, r');
    const names = ['a', 's1', 's2', 'x', 'r1', 'y'];
    const lines = names.map((name, place) => selectedAt(selected, place, names.length, name)?.line);
    assert.deepEqual(lines, [1, 2, 2, 3, 2, 5]);
    assert.equal(selectedAt(await queryColumns('SELECT a'), 3, 4, 'b'), undefined);
  });
});
