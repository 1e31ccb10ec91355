import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { createProgram } from '../../src/cli/program.js';
import { selectionWording } from '../../src/cli/selection.js';
import { workersWordAsTyped } from '../../src/cli/typed.js';
import type { BackfillInput } from '../../src/contract.js';
import type { Failure } from '../../src/failure.js';
import { askedSpans, limitsOf } from '../../src/plan/selection.js';
import { makeProject, repave, SALES_SUMMARY } from './repave.js';

/** Nothing listens there: a wrong key is wrong all the same. */
const NOBODY = { DATABASE_URL: 'postgres://127.0.0.1:1/nowhere' };

describe('what is wrong with a request, in the words that were typed', function () {
  this.timeout(300_000);
  let project: string;
  before(() => {
    project = makeProject({ 'pipelines/sales_summary.sql': SALES_SUMMARY });
  });
  after(() => rmSync(project, { recursive: true, force: true }));
  /** In this process, where it is refused: a process of its own takes a second to start. */
  const typed = async (words: readonly string[]): Promise<unknown> => {
    const before = process.env.DATABASE_URL;
    process.env.DATABASE_URL = NOBODY.DATABASE_URL;
    try {
      return await createProgram().parseAsync([...words, '--project', project], { from: 'user' });
    } finally {
      if (before === undefined) delete process.env.DATABASE_URL;
      else process.env.DATABASE_URL = before;
    }
  };

  const some = ['backfill', 'sales_summary', '1997-01-01'];
  const refused: readonly (readonly [words: readonly string[], message: string])[] = [
    [
      [...some, '--max-failures', '3'],
      '--max-failures is 3 and --on-failure is left out: expected --on-failure pause or stop with it.',
    ],
    [
      [...some, '--max-failures', '3', '--on-failure', 'continue'],
      '--max-failures is 3 and --on-failure is continue: expected --on-failure pause or stop with it.',
    ],
    [
      [...some, '--max-failures', '0', '--on-failure', 'stop'],
      '--max-failures is 0: expected a whole number from 1 to 1000000.',
    ],
    [[...some, '--on-failure', 'halt'], '--on-failure is "halt": expected one of continue, pause, stop.'],
    [[...some, '--on-busy', 'go'], '--on-busy is "go": expected one of wait, skip, fail.'],
    [[...some, '--concurrency', '101'], '--concurrency is 101: expected a whole number from 1 to 100.'],
    [[...some, '--only', 'missing,filed'], '--only is "filed": expected one of missing, failed, outdated, changed.'],
    [[...some, '--tries', '3'], '--tries is 3 and --only has no failed: expected --only with failed in it.'],
    [[...some, '--lookback', '3'], '--lookback is 3 and --last is left out: expected --last with it.'],
    [
      ['backfill', 'sales_summary', '--to', '1997-01-01'],
      '--to is "1997-01-01" and --from is missing: expected both, or --from alone for all up to the newest finished.',
    ],
    [
      ['backfill', 'sales_summary'],
      'no partitions are named: expected --from (and --to), keys as arguments, --last, or --only, such as --only missing,failed for all of those.',
    ],
    [
      [...some, '--from', '1997-01-01'],
      '--from/--to and keys as arguments are given: expected one of --from/--to, keys as arguments and --last. Leave the others out.',
    ],
    [
      ['plan', 'sales_summary', '--from', '1997-02-30'],
      '--from is "1997-02-30", which names a date that no calendar has (that month ends on 1997-02-28); sales_summary is by day: expected a day such as 2024-02-29.',
    ],
    [
      ['plan', 'sales_summary', '1997-02'],
      'the key is "1997-02", which is a month; sales_summary is by day: expected a day such as 2024-02-29.',
    ],
    [
      ['plan', 'sales_summary', '1997-01-01', '1997-02'],
      'key 2 is "1997-02", which is a month; sales_summary is by day: expected a day such as 2024-02-29.',
    ],
    [
      ['plan', 'sales_summary', '1997-02-03..1997-02-01'],
      'the first key is 1997-02-03, which comes after 1997-02-01 (the last key): expected the earlier one first.',
    ],
    [
      ['adopt', 'sales_summary', '--to', '1997-01-01'],
      '--to is "1997-01-01" and --from is missing: expected both, or --from alone for all up to the newest finished.',
    ],
    [
      ['schedule', 'add', 'sales_summary', '--cron', '15 2 * * *', '--heal', '0'],
      '--heal is 0: expected a whole number from 1 to 100000.',
    ],
  ];
  for (const [words, message] of refused) {
    it(words.join(' '), () => assert.rejects(typed(words), { type: 'InvalidInput', message }));
  }

  it('a number of lanes that cannot be, before any server is asked', () =>
    assert.rejects(typed(['concurrency', 'sales_summary', '0', '--address', '127.0.0.1:1']), {
      message: /'0' is invalid for argument 'n'\. Expected 1 to 100\./,
    }));

  it('of one pipeline of those that `verify` compares', async () => {
    const ended = await repave(project, ['verify', 'sales_summary', '--last', '0', '--json'], NOBODY);
    assert.equal(ended.code, 2, ended.stderr);
    assert.match(ended.stdout, /"--last is 0: expected a whole number from 1 to 1000000\."/);
  });

  it('also where a worker says so, in a text', () => {
    const said = (plain: readonly string[], input: Partial<BackfillInput>): string => {
      const pipeline = {
        name: 'sales',
        partition: { column: 'day', by: 'day', zone: 'UTC' },
        lookback: 0,
        fingerprint: 'f',
      } as const;
      try {
        askedSpans({ pipeline: 'sales', ...input }, pipeline, limitsOf({}, pipeline, new Date('2024-06-01T00:00:00Z')));
      } catch (error) {
        return workersWordAsTyped((error as Failure).message, selectionWording(plain, {}));
      }
      throw new Error('It was taken.');
    };
    assert.match(said(['2024-02-30'], { from: '2024-02-30', to: '2024-02-30' }), /^the key is "2024-02-30", which /);
    assert.match(said([], { from: '2024-02-30' }), /^--from is "2024-02-30", which /);
    assert.match(said([], { last: 1_000_000 }), /^--last goes back to years before /);
    assert.match(said([], { from: '2024-03-01', to: '2024-02-01' }), /^--from is 2024-03-01, .* \(--to\): expected/);
    const two = ['2024-01-01', '2024-03-01..2024-02-01'];
    assert.match(said(two, { keys: two }), /^key 2, before the dots, is 2024-03-01, .* \(behind them\): expected/);
    assert.equal(workersWordAsTyped('from now on', selectionWording([], {})), 'from now on');
  });
});
