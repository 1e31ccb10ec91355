import { judgePartition } from '../../src/plan/judge-partition.js';
import { NOW, pipeline, plan, refused } from './planning.js';

describe('plan: what is refused', () => {
  it('a range the wrong way round, naming both', async () => {
    await refused(
      plan({ from: '2024-03-02', to: '2024-03-01' }),
      /from is 2024-03-02, which comes after 2024-03-01 \(to\)/,
    );
    await refused(
      plan({ keys: ['2024-03-01', '2024-03-02..2024-03-01'] }),
      /keys\[1\], before the dots, is 2024-03-02, which comes after 2024-03-01/,
    );
  });

  it('keys of another form, naming field, value and what was expected', async () => {
    await refused(
      plan({ from: '2024-02-29T13Z' }),
      /^from is "2024-02-29T13Z", which is an hour; sales is by day: expected a day such as 2024-02-29\.$/,
    );
    await refused(plan({ from: '1997-02-30' }), /^from is "1997-02-30", which names a date that no calendar has/);
    await refused(plan({ from: '2024-03-01', to: 'today' }), /^to is "today", which is not a day; sales is by day/);
    await refused(plan({ keys: ['2024-03-01', '2024-W09'] }), /^keys\[1\] is "2024-W09", which is a week/);
    await refused(
      plan({ keys: ['2024-03-01..2024-03'] }),
      /^keys\[0\], behind the dots, is "2024-03", which is a month/,
    );
    await refused(plan({ keys: ['2024-03-01...2024-03-02'] }), /behind the dots, is "\.2024-03-02"/);
    await refused(plan({ keys: ['..2024-03-02'] }), /before the dots, is "", which is empty/);
  });

  it('a request of which nothing is left, naming the nearest partition', async () => {
    await refused(
      plan({ from: '2024-03-10', to: '2024-03-10' }),
      /^Nothing is left to fill in sales\. 1 partition is left out: 2024-03-10, which is unfinished until .* The nearest partition is 2024-03-09, the newest finished one\.$/,
    );
    await refused(
      plan({ from: '2024-03-12' }),
      /in the future\. The nearest partition is 2024-03-09, the newest finished one\.$/,
    );
    await refused(
      plan({ from: '2024-03-12', includeUnfinished: true }),
      /The nearest partition is 2024-03-10, the current one\.$/,
    );
    await refused(
      plan({ from: '1990-01-01', to: '1990-12-31' }),
      /365 partitions are left out.*The nearest partition is 2023-01-01, its start\.$/,
    );
    await refused(
      plan({ only: ['missing'] }, { start: '2024-03-10' }),
      /^sales has nothing to fill yet: its first partition 2024-03-10 is finished at 2024-03-11T00:00:00Z\.$/,
    );
    await refused(plan({ last: 3 }, { start: '2024-03-10' }), /^sales has nothing to fill yet/);
    await refused(
      plan({ last: 1 }, {}, { asOf: new Date('2022-06-01T00:00:00Z') }),
      /The nearest partition is 2023-01-01, its start\.$/,
    );
  });
});

describe('partition alone: what is refused', () => {
  const judge = async (key: string, includeUnfinished?: boolean): Promise<void> =>
    judgePartition({ pipeline: 'sales', key, includeUnfinished }, await Promise.resolve(pipeline()), NOW);

  it('nothing of what may be filled', async () => {
    await judge('2024-03-09');
    await judge('2023-01-01');
    await judge('2024-03-10', true);
  });

  it('a key that is none, unfinished, in the future or before the start', async () => {
    await refused(
      judge('2024-02-30'),
      /^key is "2024-02-30", which names a date that no calendar has.*; sales is by day: expected a day/,
    );
    await refused(
      judge('2024-03-10'),
      /2024-03-10, which is unfinished until 2024-03-11T00:00:00Z\. The nearest partition is 2024-03-09/,
    );
    await refused(judge('2024-03-11', true), /in the future\. The nearest partition is 2024-03-10, the current one/);
    await refused(
      judge('2022-12-31'),
      /before the pipeline's start 2023-01-01\. The nearest partition is 2023-01-01, its start/,
    );
  });
});
