import assert from 'node:assert/strict';
import { createOutput } from '../../src/cli/output.js';
import { VerifyReport } from '../../src/cli/verify-report.js';

const NOTHING = { outdated: 0, found: 0, firstFound: null, lastFound: null };

/** What a report of one finding says, and its exit code. */
function told(dryRun: boolean, before: typeof NOTHING | { firstFound: string; lastFound: string } = NOTHING) {
  const texts = { out: '', err: '' };
  const screen = (name: 'out' | 'err') => ({ write: (text: string) => (texts[name] += text) });
  const report = new VerifyReport(dryRun);
  const entry = report.begin('sales', { outdated: 0, found: 0, ...before });
  report.add(entry, {
    ...{ compared: 2, checksums: 0, unreadable: 0 },
    findings: [{ key: '2024-02-28', ledgerRows: 3, tableRows: 0, state: 'missing' }],
  });
  const code = report.tell(createOutput({}, {}, screen('out'), screen('err')));
  return { ...texts, code };
}

describe('the report of a verification', () => {
  it('says of a dry run that nothing is recorded, and gives no command', () => {
    const { out, err, code } = told(true);
    assert.match(out, /would count as/);
    assert.equal(err, 'Nothing was recorded.\n');
    assert.equal(code, 1);
  });

  it('gives a command that takes in what was found before, on either side, in a dry run that alone', () => {
    const before = { found: 2, firstFound: '2024-01-05', lastFound: '2024-03-01' };
    for (const dryRun of [false, true]) {
      const { err } = told(dryRun, before);
      assert.match(err, /repave backfill sales 2024-01-05\.\.2024-03-01 --only missing,failed,outdated\n$/);
    }
    assert.match(told(false).err, /repave backfill sales 2024-02-28 --only/);
  });
});
