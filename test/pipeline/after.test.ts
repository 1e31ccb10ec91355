import assert from 'node:assert/strict';
import { afterProblems, circleOf, downstreamOf, type Ordered, orderOf } from '../../src/pipeline/after.js';

const graph = (given: Readonly<Record<string, readonly string[]>>): Map<string, Ordered> =>
  new Map(Object.entries(given).map(([name, after]) => [name, { name, after, database: 'DATABASE_URL' }]));

/** What is wrong with one pipeline of a graph. */
const wrong = (name: string, all: Map<string, Ordered>): string[] => {
  const pipeline = all.get(name);
  assert.ok(pipeline);
  return afterProblems(pipeline, all);
};

describe('what comes after what', () => {
  it('names the whole circle, from each pipeline in it, and says nothing of those that only come after it', () => {
    const all = graph({ a: ['c'], b: ['a'], c: ['b'], behind: ['a'], free: [] });
    assert.deepEqual(circleOf('a', all), ['a', 'c', 'b', 'a']);
    assert.match(wrong('a', all).join(), /a comes after c comes after b comes after a\./);
    assert.match(wrong('b', all).join(), /b comes after a comes after c comes after b\./);
    assert.deepEqual(wrong('behind', all), []);
    assert.deepEqual(wrong('free', all), []);
  });

  it('names the shortest of several circles', () => {
    assert.deepEqual(circleOf('a', graph({ a: ['b', 'd'], b: ['c'], c: ['a'], d: ['a'] })), ['a', 'd', 'a']);
  });

  it('finds no circle in a diamond', () => {
    const all = graph({ days: [], left: ['days'], right: ['days'], month: ['left', 'right'] });
    for (const name of all.keys()) assert.deepEqual(wrong(name, all), []);
  });

  it('refuses a pipeline after itself, and says that once', () => {
    assert.deepEqual(wrong('a', graph({ a: ['a'] })), [
      '`after` names the pipeline itself: expected others, which are filled before it.',
    ]);
  });

  it('refuses the former name of one that was renamed, with the new one, also where the ledger has the old one yet', () => {
    const renamed = { name: 'daily_sales', formerly: 'daily' };
    const monthly = { name: 'monthly', after: ['daily'] };
    assert.deepEqual(afterProblems(monthly, orderOf([renamed, monthly], [{ name: 'daily', after: [] }])), [
      '`after` names daily, which is called daily_sales now: expected that.',
    ]);
    const mended = { ...monthly, after: ['daily_sales'] };
    assert.deepEqual(afterProblems(mended, orderOf([renamed, mended], [{ name: 'daily', after: [] }])), []);
    // Whose file is still there keeps its name.
    assert.deepEqual(afterProblems(monthly, orderOf([renamed, monthly, { name: 'daily' }], [])), []);
  });

  it('refuses a name that is none, with those that are near', () => {
    const all = graph({ a: ['daily_sale'], daily_sales: [] });
    assert.deepEqual(wrong('a', all), [
      '`after` names daily_sale, and there is no such pipeline. Did you mean daily_sales?',
    ]);
    assert.deepEqual(wrong('a', graph({ a: ['zzz'], daily_sales: [] })), [
      '`after` names zzz, and there is no such pipeline. There are: daily_sales.',
    ]);
  });

  it('refuses one of another database, and takes one whose database is not known', () => {
    const all = graph({ a: ['b', 'broken'] });
    all.set('b', { name: 'b', database: 'MART_URL' });
    all.set('broken', { name: 'broken' });
    const [problem, ...others] = wrong('a', all);
    assert.match(
      problem ?? '',
      /names b, whose target is in another database \(MART_URL; this one’s is in DATABASE_URL\)/,
    );
    assert.deepEqual(others, []);
  });

  it('orders what depends on a pipeline behind all that it comes after', () => {
    const all = graph({
      // By name alone the month would come first.
      a_month: ['left', 'right'],
      days: [],
      left: ['days'],
      right: ['days', 'other'],
      other: [],
      year: ['a_month'],
      elsewhere: ['other'],
    });
    assert.deepEqual(downstreamOf('days', all), ['left', 'right', 'a_month', 'year']);
    assert.deepEqual(downstreamOf('right', all), ['a_month', 'year']);
    assert.deepEqual(downstreamOf('year', all), []);
    assert.deepEqual(downstreamOf('nobody', all), []);
  });
});
