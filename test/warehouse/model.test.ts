import assert from 'node:assert/strict';
import { explore } from './explore-protocol.js';
import { type Order, type Protocol, WHOLE, type World } from './protocol-model.js';

const TWO: readonly Order[] = [
  { scheduledAt: 1, number: 1 },
  { scheduledAt: 2, number: 2 },
];
/** The second attempt is reset while it runs: Temporal counts from 1 again. */
const RESET: readonly Order[] = [...TWO, { scheduledAt: 3, number: 1 }];
const ONE = TWO.slice(0, 1);

const WORLDS = {
  'one run': { runs: [TWO], timeouts: true, crashes: true },
  'one run, its activity reset': { runs: [RESET], timeouts: true, crashes: true },
  'one run, cancelled': { runs: [TWO], timeouts: true, crashes: true, first: 'cancelled' },
  'two runs of one attempt each': { runs: [ONE, ONE] },
  'two runs': { runs: [TWO, TWO], timeouts: true },
  'two runs whose workers die': { runs: [TWO, ONE], timeouts: true, crashes: true },
  'two runs, the first cancelled': { runs: [TWO, ONE], timeouts: true, first: 'cancelled' },
  'two runs, the first terminated': { runs: [TWO, ONE], timeouts: true, first: 'terminated' },
} as const satisfies Record<string, World>;
type WorldName = keyof typeof WORLDS;

/** How the runs end; `gave up` is a run whose every attempt lost its worker or its connection. */
const ENDINGS: Readonly<Record<WorldName, readonly string[]>> = {
  'one run': ['filled', 'gave up'],
  'one run, its activity reset': ['filled', 'gave up'],
  'one run, cancelled': ['cancelled', 'filled', 'gave up'],
  'two runs of one attempt each': ['filled, filled'],
  'two runs': ['filled, filled'],
  'two runs whose workers die': ['filled, filled', 'filled, gave up', 'gave up, filled', 'gave up, gave up'],
  'two runs, the first cancelled': ['cancelled, filled', 'filled, filled'],
  'two runs, the first terminated': ['filled, filled', 'terminated, filled'],
};

interface Variant {
  readonly lacks: string;
  readonly change: Partial<Protocol>;
  readonly world: WorldName;
  readonly breaks: string;
}

const BROKEN: readonly Variant[] = [
  {
    lacks: 'no lock',
    change: { lock: 'none' },
    world: 'two runs of one attempt each',
    breaks: 'one copy of the rows',
  },
  {
    lacks: 'lock inside the DELETE’s statement',
    change: { lock: 'in the DELETE' },
    world: 'two runs of one attempt each',
    breaks: 'one copy of the rows',
  },
  {
    lacks: 'no look for the run’s own fill',
    change: { look: 'at the fence alone' },
    world: 'one run',
    breaks: 'one fill a run',
  },
  {
    lacks: 'no guard',
    change: { guard: 'none' },
    world: 'one run',
    breaks: 'an older attempt commits after a newer one began',
  },
  {
    lacks: 'a guard that reads the claim and does not hold it',
    change: { guard: 'reads the claim' },
    world: 'one run',
    breaks: 'an older attempt commits after a newer one began',
  },
  {
    lacks: 'no claim guard',
    change: { claims: 'in any order' },
    world: 'one run',
    breaks: 'a run is held up',
  },
  {
    lacks: 'attempts ordered by their number alone',
    change: { claims: 'by number' },
    world: 'one run, its activity reset',
    breaks: 'a live attempt fails as StaleAttempt',
  },
  {
    lacks: 'one fence for all runs',
    change: { fence: 'all runs’' },
    world: 'two runs of one attempt each',
    breaks: 'a live attempt fails as StaleAttempt',
  },
  {
    lacks: 'older attempts that hold the claim are not ended',
    change: { endsOlder: 'at lock' },
    world: 'one run',
    breaks: 'a run is held up',
  },
  {
    lacks: 'older attempts are not ended',
    change: { endsOlder: 'never' },
    world: 'one run',
    breaks: 'a run is held up',
  },
  {
    lacks: 'overdue attempts of other runs are not ended',
    change: { endsOthers: 'never' },
    world: 'two runs, the first terminated',
    breaks: 'a run is held up',
  },
  {
    lacks: 'attempts of other runs that a newer claim has replaced are not ended',
    change: { endsOthers: 'past their deadline' },
    world: 'two runs, the first terminated',
    breaks: 'a run is held up',
  },
  {
    lacks: 'endFill closes nothing',
    change: { endFill: 'ends backends alone' },
    world: 'one run, cancelled',
    breaks: 'a cancelled run commits',
  },
];

describe('the protocol as a model, in every state it can be in', function () {
  // Half a minute of work, and many times that on a slow machine.
  this.timeout(600_000);
  for (const name of Object.keys(WORLDS) as WorldName[]) {
    it(`holds for ${name}`, () => {
      const { endings, broken } = explore(WHOLE, WORLDS[name]);
      assert.equal(broken, undefined);
      assert.deepEqual(endings, ENDINGS[name]);
    });
  }

  describe('a broken protocol is caught', () => {
    for (const { lacks, change, world, breaks } of BROKEN) {
      it(`${lacks}: ${breaks}`, () => {
        const { broken } = explore({ ...WHOLE, ...change }, WORLDS[world]);
        assert.equal(broken?.promise, breaks, broken?.way.join('\n'));
      });
    }
  });
});
