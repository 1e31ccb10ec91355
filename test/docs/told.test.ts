import assert from 'node:assert/strict';
import { mkdtempSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { signature } from '../../src/telling/signature.js';
import { schema } from '../support/schemas.js';
import { shared } from '../support/servers.js';
import { run, Snippets } from './snippets.js';

const SECRET = 'geheim';
const BODY = JSON.stringify({ id: 'run/backfill-ended', reason: 'Übermorgen' });
const LATE_MS = 301_000;

/** Signatures of just now, and whether they are to be taken for ours. */
const signatures = (): readonly (readonly [header: string, ours: boolean])[] => [
  [signature(SECRET, BODY), true],
  [signature('another', BODY), false],
  [signature(SECRET, `${BODY} `), false],
  [signature(SECRET, BODY, new Date(Date.now() - LATE_MS)), false],
  [signature(SECRET, BODY).replace('v1=', 'v2='), false],
  ['', false],
];

describe('docs/told.md', () => {
  const snippets = new Snippets('told.md');
  let folder: string;
  before(async () => {
    folder = mkdtempSync(join((await shared('folder')).dir, 'told-'));
  });

  it('shows a document as its schema says', () => {
    const judge = schema('notice');
    assert.ok(judge(JSON.parse(snippets.take('json'))), JSON.stringify(judge.errors));
  });

  it('checks a signature in Python', async () => {
    const program = `${snippets.take('python')}
import json
cases = json.load(open('cases.json', encoding='utf-8'))
print(json.dumps([is_ours(cases['SECRET'], cases['BODY'].encode(), header) for header, _ in cases['SIGNATURES']]))
`;
    await judgesAll('python3', 'check.py', program);
  });

  it('checks a signature in Node', async () => {
    const program = `${snippets.take('js')}
import { readFileSync } from 'node:fs';
const cases = JSON.parse(readFileSync('cases.json', 'utf8'));
console.log(JSON.stringify(cases.SIGNATURES.map(([header]) => isOurs(cases.SECRET, Buffer.from(cases.BODY), header))));
`;
    await judgesAll(process.execPath, 'check.mjs', program);
  });

  async function judgesAll(command: string, name: string, program: string): Promise<void> {
    const SIGNATURES = signatures();
    writeFileSync(join(folder, 'cases.json'), JSON.stringify({ SECRET, BODY, SIGNATURES }));
    writeFileSync(join(folder, name), program);
    const { code, stdout, stderr } = await run(command, [name], { PATH: process.env.PATH ?? '' }, folder).ended;
    assert.equal(code, 0, stderr);
    assert.deepEqual(
      JSON.parse(stdout),
      SIGNATURES.map(([, ours]) => ours),
    );
  }
});
