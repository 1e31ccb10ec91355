import assert from 'node:assert/strict';
import fc from 'fast-check';
import { loadModule, scanSync } from 'libpg-query';
import { blankComments, type SqlToken, sqlTokens } from '../../src/pipeline/sql-tokens.js';

const parameters = (text: string): string[] =>
  sqlTokens(text)
    .filter(({ kind }) => kind === 'parameter')
    .map(({ text }) => text);

describe('SQL tokens: where a parameter is one', () => {
  const cases: [string, string[]][] = [
    ['SELECT :date', [':date']],
    ['d>=:date AND d<:end_date', [':date', ':end_date']],
    ['BETWEEN:start AND:end', [':start', ':end']],
    ['f(:key,:date)', [':key', ':date']],
    ['f(a := :date, b:=:key, c=>:end)', [':date', ':key', ':end']],
    [':date::text', [':date']],
    ['a::date', []],
    ['a :: date', []],
    ["':start' || 'it''s :end'", []],
    ["E'it\\':start' || :key", [':key']],
    ["e'a\\\\' || :key || ':date'", [':key']],
    ["E'a'\n  'b\\':start' || :key", [':key']],
    ["E'a' -- :start\n  'b\\':start' || :key", [':key']],
    ["'a\\' || :key || ':date'", [':key']],
    ["U&'\\0441 :start', x':date', b'1', n':date'", []],
    ['":start", "a"":end"', []],
    ['U&":start"', []],
    ['$$ :start $$ || $a$ :end $$ :end $a$ || :key', [':key']],
    ['a$b$ :key $b$', [':key']],
    ['/* :start /* :end */ :date */ :key', [':key']],
    ['-- :start\n:key -- :end', [':key']],
    ['1--:start\n+:key', [':key']],
    ['a[1:2]', []],
    ['a[lo:end]', []],
    ['a[lo:date]', []],
    ['a[:n]', []],
    ['a[:key]', [':key']],
    ['a[f(x):n]', []],
    ['a[b[1]:n]', []],
    ['a[1: :key]', [':key']],
    ['a[f(:key)]', [':key']],
    ['ARRAY[:start,:end]', [':start', ':end']],
    ['a[CASE WHEN b THEN:key END:c]', [':key']],
    ["j->':date' ?:key", [':key']],
    ['@:key', [':key']],
    ['SELECT :DATE, :Start', [':DATE', ':Start']],
    ["':date", []],
    ['"a :date', []],
    ['/* :date', []],
    ['$$ :date', []],
    ["'é' || :key || 'ü:date'", [':key']],
    ['é:key', [':key']],
  ];
  for (const [text, expected] of cases) {
    it(JSON.stringify(text), () => assert.deepEqual(parameters(text), expected));
  }
});

describe('SQL tokens: comments blanked', () => {
  it('leaves every other character in its place', () => {
    assert.equal(
      blankComments("a -- b\n/* c\n/* d */ */ 'e -- f' 'g' -- h\n'i' $$ -- j $$ \"k--\" -- l"),
      `a ${' '.repeat(4)}\n${' '.repeat(4)}\n${' '.repeat(10)} 'e -- f' 'g' ${' '.repeat(4)}\n'i' $$ -- j $$ "k--"`,
    );
  });
});

describe("SQL tokens: cut as PostgreSQL's own scanner cuts them", () => {
  before(loadModule);

  const fragments = [
    'select', 'Ünï', 'a1$x', '"q""q"', "'s''s'", "E'e\\'e'", "'a'\n'b'", '$$d$$', '$t$ $$ $t$', '1', '1.5e-3', ' .5 ', '0x1F', '1_000',
    '::', ':=', ':date', '=>', '->>', '=-1', '>=-', '@-', '+', '-', '*', '/', '<>', '!=', '||', '?|', '(', ')', '[', ']', ',', ';', ' . ',
    '-- c\n', '/* c /* d */ */', ' ', '\n', '\t', "x'1F'", "U&'d'", 'U&"d"', "n'x'", '%', '^', '#>', '<=', '~*',
  ]; // prettier-ignore

  it('whatever follows whatever', () => {
    let compared = 0;
    fc.assert(
      fc.property(fc.array(fc.constantFrom(...fragments), { maxLength: 12 }), (parts) => {
        const text = parts.join('');
        // The library's scanner, unlike the server's, ends a string at a comment.
        if (/'\s*--/.test(text)) return;
        let expected: string[];
        try {
          expected = scanned(text);
        } catch {
          return;
        }
        compared++;
        assert.deepEqual(ours(text), expected);
      }),
      { numRuns: 5000 },
    );
    assert.ok(compared > 2500, `${compared} compared`);
  });
});

/** As the scanner says it: a parameter is a colon and a name, a string and its continuation are one, comments left out. */
function ours(text: string): string[] {
  const found: string[] = [];
  let last: SqlToken | undefined;
  for (const token of sqlTokens(text)) {
    if (token.kind === 'comment') continue;
    const gap = text.slice(last?.end ?? 0, token.start);
    const goesOn =
      last?.kind === 'string' && !last.text.startsWith('$') && token.text.startsWith("'") && /^\s*\n\s*$/.test(gap);
    if (goesOn) found.push(`${found.pop()}${gap}${token.text}`);
    else if (token.kind === 'parameter') found.push(':', token.text.slice(1));
    else found.push(token.text);
    last = token;
  }
  return found;
}

function scanned(text: string): string[] {
  const bytes = Buffer.from(text);
  const tokens = scanSync(text).tokens.filter(({ tokenName }) => !tokenName.endsWith('_COMMENT'));
  return tokens.map(({ start, end }) => bytes.subarray(start, end).toString());
}
