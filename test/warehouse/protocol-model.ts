/**
 * The protocol of a fill as a model: claims, locks, the ledger and the window's rows, without SQL. Every order of steps is one
 * behaviour, and an attempt that takes no step is a frozen one: so every freeze and thaw is among them.
 *
 * Left out are the fill's looks at the window behind DELETE and INSERT: here locks and fences must hold without them.
 */

/** The parts of the protocol; a broken variant lacks one, or has a weaker one. */
export interface Protocol {
  readonly lock: 'a statement of its own' | 'in the DELETE' | 'none';
  readonly look: 'for its run’s fill and at the fence' | 'at the fence alone';
  readonly guard: 'holds the claim' | 'reads the claim' | 'none';
  readonly claims: 'by scheduled time and number' | 'by number' | 'in any order';
  readonly fence: 'a run’s' | 'all runs’';
  readonly endsOlder: 'at claim and lock' | 'at lock' | 'never';
  readonly endsOthers: 'past their deadline or newest claim' | 'past their deadline' | 'never';
  readonly endFill: 'closes the claim' | 'ends backends alone';
}

export const WHOLE: Protocol = {
  lock: 'a statement of its own',
  look: 'for its run’s fill and at the fence',
  guard: 'holds the claim',
  claims: 'by scheduled time and number',
  fence: 'a run’s',
  endsOlder: 'at claim and lock',
  endsOthers: 'past their deadline or newest claim',
  endFill: 'closes the claim',
};

export interface Order {
  readonly scheduledAt: number;
  readonly number: number;
}

/** What there is, and what may happen besides the attempts' own steps. */
export interface World {
  /** Each run's attempts as Temporal schedules them, one after another. */
  readonly runs: readonly (readonly Order[])[];
  /** Temporal hears nothing of an attempt, which may live on, and schedules the next. */
  readonly timeouts?: boolean;
  /** A worker's process ends; what it had open on the server stays until the server notices. */
  readonly crashes?: boolean;
  /** What becomes of the first run, at any moment: its cancel ends the fill from another worker, its termination nothing. */
  readonly first?: 'cancelled' | 'terminated';
}

export interface AttemptState extends Order {
  readonly run: number;
  /** What it does next. */
  readonly next:
    'idle' | 'claim' | 'lock' | 'look' | 'snapshot' | 'delete' | 'copy' | 'guard' | 'send' | 'read' | 'ended';
  /** Of its newest claim; 0 before. */
  readonly fence: number;
  /** Its transaction. `sent`: its COMMIT is on the way, and lands or does not. */
  readonly backend: 'none' | 'open' | 'sent' | 'aborted' | 'committed';
  readonly holdsWindow: boolean;
  readonly holdsClaim: boolean;
  /** Rows that the snapshot of its DELETE sees. */
  readonly snapshot: readonly number[];
  /** Rows that its DELETE took. */
  readonly deleted: readonly number[];
  readonly overdue: boolean;
}

export interface ClaimState extends Order {
  readonly fence: number;
  readonly closed: boolean;
}

export type Phase = 'runs' | 'filled' | 'failed' | 'gave up' | 'cancelling' | 'closed' | 'cancelled' | 'terminated';

export interface RunState {
  /** The attempt that Temporal waits for; -1: none. */
  readonly live: number;
  readonly phase: Phase;
}

export interface State {
  readonly attempts: readonly AttemptState[];
  readonly runs: readonly RunState[];
  /** A run's claim on the partition. */
  readonly claims: readonly (ClaimState | null)[];
  readonly nextFence: number;
  /** Committed rows of the window, by the attempt that wrote them; -1 wrote the old ones. */
  readonly rows: readonly number[];
  /** Committed fills, by attempt. */
  readonly fills: readonly number[];
  /** The promise that the last step broke; empty: none. */
  readonly broken: string;
}

export function initial(world: World): State {
  const attempts = world.runs.flatMap((orders, run) =>
    orders.map((order, i): AttemptState => ({
      ...order,
      run,
      next: i === 0 ? 'claim' : 'idle',
      fence: 0,
      backend: 'none',
      holdsWindow: false,
      holdsClaim: false,
      snapshot: [],
      deleted: [],
      overdue: false,
    })),
  );
  return {
    attempts,
    runs: world.runs.map((_, run) => ({ live: attempts.findIndex((attempt) => attempt.run === run), phase: 'runs' })),
    claims: world.runs.map(() => null),
    nextFence: 1,
    rows: [-1],
    fills: [],
    broken: '',
  };
}

export function change(state: State, i: number, to: Partial<AttemptState>): State {
  return { ...state, attempts: state.attempts.map((attempt, j) => (j === i ? { ...attempt, ...to } : attempt)) };
}

export function changeRun(state: State, run: number, to: Partial<RunState>): State {
  return { ...state, runs: state.runs.map((each, j) => (j === run ? { ...each, ...to } : each)) };
}

export function changeClaim(state: State, run: number, claim: ClaimState | null): State {
  return { ...state, claims: state.claims.map((each, j) => (j === run ? claim : each)) };
}

export function isOpen({ backend }: AttemptState): boolean {
  return backend === 'open' || backend === 'sent';
}

/** Whether a run has a committed fill. */
export function hasFill(state: State, run: number): boolean {
  return state.fills.some((i) => state.attempts[i]?.run === run);
}

/** Whether `a` is an older attempt than `b`, or the same. */
export function isUpTo(a: Order, b: Order): boolean {
  return a.scheduledAt === b.scheduledAt ? a.number <= b.number : a.scheduledAt < b.scheduledAt;
}
