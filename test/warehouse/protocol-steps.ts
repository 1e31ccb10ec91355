import {
  type AttemptState,
  change,
  changeClaim,
  changeRun,
  hasFill,
  isOpen,
  isUpTo,
  type Order,
  type Protocol,
  type State,
  type World,
} from './protocol-model.js';

export interface Step {
  readonly name: string;
  readonly to: State;
  /**
   * Whom it gets on: every run; or other runs only, since the step comes late: a newer attempt of the same run must not have to
   * wait for it. Undefined for what may never come, such as a thaw.
   */
  readonly helps?: 'all' | { readonly allBut: number };
}

/** Everything that can happen next. */
export function stepsFrom(state: State, protocol: Protocol, world: World): Step[] {
  const found: Step[] = endFillSteps(state, protocol, world).map((step) => ({ ...step, helps: 'all' }));
  for (const [i, attempt] of state.attempts.entries()) {
    const { run, scheduledAt, number } = attempt;
    const add = (what: string, to: State, helps?: Step['helps']): void =>
      void found.push({ name: `run ${run}, attempt ${scheduledAt}.${number}: ${what}`, to, helps });
    const live = state.runs[run]?.live === i;
    const works = attempt.next !== 'idle' && attempt.next !== 'ended';
    for (const { name, to } of attemptSteps(state, i, attempt, protocol)) add(name, to, live ? 'all' : undefined);
    if (attempt.backend === 'sent') add('its COMMIT lands', land(state, i, attempt), 'all');
    if (world.crashes && works) add('its process ends', attemptEnds(change(state, i, { next: 'ended' }), i, 'lost'));
    if (world.timeouts && live && works && state.attempts[i + 1]?.run === run)
      add('not heard of', scheduleNext(state, run));
    if (live) continue;
    if (!works && isOpen(attempt)) add('its connection is found dead', abort(state, i), { allBut: run });
    // While a COPY waits for its client no time limit of the server's runs.
    if (works && attempt.backend === 'open' && attempt.next !== 'copy') {
      add('has stood idle in its transaction for too long', abort(state, i), { allBut: run });
    }
    if (attempt.fence > 0 && !attempt.overdue && isOpen(attempt)) {
      add('its deadline passes', change(state, i, { overdue: true }), { allBut: run });
    }
  }
  return found;
}

interface Move {
  readonly name: string;
  readonly to: State;
}

/** What one attempt does next: nothing where it waits for another, unless it may end that one. */
function attemptSteps(state: State, i: number, me: AttemptState, protocol: Protocol): Move[] {
  if (me.next === 'idle' || me.next === 'ended') return [];
  if (me.backend === 'aborted') return [{ name: 'finds its connection lost', to: attemptEnds(state, i, 'lost') }];
  const place = protocol.fence === 'a run’s' ? me.run : 0;
  const claim = state.claims[place] ?? null;
  const mine = claim?.fence === me.fence && !claim.closed;
  const to = (next: AttemptState['next'], also: Partial<AttemptState> = {}): State =>
    change(state, i, { next, ...also });
  const begun: AttemptState['next'] = protocol.lock === 'a statement of its own' ? 'delete' : 'snapshot';
  switch (me.next) {
    case 'claim': {
      const holder = claimHolder(state, place, protocol);
      if (holder >= 0) {
        const other = state.attempts[holder];
        const may = protocol.endsOlder === 'at claim and lock' && other && mayFollow(other, me, protocol);
        return may ? [{ name: `ends ${holder}, which holds its claim`, to: end(state, i, holder) }] : [];
      }
      if (claim && (claim.closed || !mayFollow(claim, me, protocol))) {
        return [{ name: 'claims too late', to: attemptEnds(state, i, 'stale') }];
      }
      const { scheduledAt, number } = me;
      const fence = state.nextFence;
      const claimed = to('lock', { fence });
      return [
        {
          name: 'claims',
          to: { ...changeClaim(claimed, place, { scheduledAt, number, fence, closed: false }), nextFence: fence + 1 },
        },
      ];
    }
    case 'lock': {
      if (protocol.lock !== 'a statement of its own') return [{ name: 'begins', to: to('look', { backend: 'open' }) }];
      return unlocked(state, i, me, protocol, {
        name: 'locks',
        to: to('look', { backend: 'open', holdsWindow: true }),
      });
    }
    case 'look':
      if (protocol.look !== 'at the fence alone' && hasFill(state, me.run)) {
        return [{ name: 'finds its run’s fill', to: attemptEnds(state, i, 'found') }];
      }
      if (!mine) return [{ name: 'looks too late', to: attemptEnds(state, i, 'stale') }];
      return [{ name: 'looks', to: to(begun) }];
    case 'snapshot':
      return [{ name: 'takes the snapshot of its DELETE', to: to('delete', { snapshot: state.rows }) }];
    case 'delete': {
      const sees = begun === 'snapshot' ? me.snapshot : state.rows;
      // A row that another open transaction has deleted is waited for; once that has committed it is gone.
      if (
        state.attempts.some((other, j) => j !== i && isOpen(other) && other.deleted.some((row) => sees.includes(row)))
      )
        return [];
      const deleted = sees.filter((row) => state.rows.includes(row));
      const locks = protocol.lock === 'in the DELETE';
      const move = {
        name: 'deletes',
        to: to('copy', { deleted, snapshot: [], holdsWindow: locks || me.holdsWindow }),
      };
      return locks ? unlocked(state, i, me, protocol, move) : [move];
    }
    case 'copy':
      return [{ name: 'copies', to: to('guard') }];
    case 'guard': {
      if (protocol.guard === 'none') return [{ name: 'writes its ledger row', to: to('send') }];
      if (claimHolder(state, place, protocol) >= 0) return [];
      if (!mine || me.overdue) return [{ name: 'is refused by the guard', to: attemptEnds(state, i, 'stale') }];
      return [{ name: 'passes the guard', to: to('send', { holdsClaim: protocol.guard === 'holds the claim' }) }];
    }
    case 'send':
      return [{ name: 'sends COMMIT', to: to('read', { backend: 'sent' }) }];
    case 'read':
      return me.backend === 'committed' ? [{ name: 'reads COMMIT', to: attemptEnds(state, i, 'filled') }] : [];
    default:
      return me.next satisfies never;
  }
}

/** `move` where nobody else holds the window; else the end of the holder, where it may be ended. */
function unlocked(state: State, i: number, me: AttemptState, protocol: Protocol, move: Move): Move[] {
  const holder = state.attempts.findIndex((other, j) => j !== i && other.holdsWindow);
  const other = state.attempts[holder];
  if (!other) return [move];
  const claim = state.claims[protocol.fence === 'a run’s' ? other.run : 0];
  const older = (protocol.fence === 'all runs’' || other.run === me.run) && other.fence < me.fence;
  const overdue = other.overdue && claim?.fence === other.fence;
  const replaced = claim !== null && claim !== undefined && claim.fence > other.fence;
  const may =
    (older && protocol.endsOlder !== 'never') ||
    (overdue && protocol.endsOthers !== 'never') ||
    (replaced && protocol.endsOthers === 'past their deadline or newest claim');
  return may ? [{ name: `ends ${holder}, which holds the window`, to: end(state, i, holder) }] : [];
}

/** Which attempt holds a claim's row, between its guard and the end of its transaction; -1: none. */
function claimHolder(state: State, place: number, { fence }: Protocol): number {
  return state.attempts.findIndex(({ holdsClaim, run }) => holdsClaim && (fence === 'all runs’' || run === place));
}

function mayFollow(older: Order, me: Order, { claims, fence }: Protocol): boolean {
  if (claims === 'in any order' || fence === 'all runs’') return true;
  return claims === 'by number' ? older.number <= me.number : isUpTo(older, me);
}

/** An attempt ends another's backend. */
function end(state: State, i: number, victim: number): State {
  const other = state.attempts[victim];
  const wrong = other && other.run !== state.attempts[i]?.run && state.runs[other.run]?.live === victim;
  return { ...abort(state, victim), broken: wrong ? 'a run ends a live attempt of another run' : '' };
}

const FREE = { holdsWindow: false, holdsClaim: false, snapshot: [], deleted: [] } as const;

function abort(state: State, i: number): State {
  return change(state, i, { backend: 'aborted', ...FREE });
}

function land(state: State, i: number, me: AttemptState): State {
  const late = state.attempts.some(
    (other, j) => j !== i && other.run === me.run && other.fence > 0 && isUpTo(me, other),
  );
  const cancelled = state.runs[me.run]?.phase === 'cancelled';
  const landed = change(state, i, { backend: 'committed', ...FREE });
  return {
    // The guard has deleted the claim that it holds.
    ...(me.holdsClaim ? changeClaim(landed, me.run, null) : landed),
    rows: [...state.rows.filter((row) => !me.deleted.includes(row)), i],
    fills: [...state.fills, i],
    broken: late ? 'an older attempt commits after a newer one began' : cancelled ? 'a cancelled run commits' : '',
  };
}

/** An attempt's process is done with it; what Temporal makes of that, where it still waits for it. */
function attemptEnds(state: State, i: number, as: 'filled' | 'found' | 'stale' | 'lost'): State {
  const me = state.attempts[i];
  if (!me) return state;
  const rolledBack = as === 'lost' || as === 'filled' ? {} : ({ backend: 'none', ...FREE } as const);
  const ended = change(state, i, { next: 'ended', ...rolledBack });
  if (state.runs[me.run]?.live !== i) return ended;
  if (as === 'lost') return scheduleNext(ended, me.run);
  if (as === 'stale') {
    return {
      ...changeRun(ended, me.run, { live: -1, phase: 'failed' }),
      broken: 'a live attempt fails as StaleAttempt',
    };
  }
  const told = changeRun(ended, me.run, { live: -1, phase: 'filled' });
  return hasFill(state, me.run) ? told : { ...told, broken: 'a run says filled and has no fill' };
}

function scheduleNext(state: State, run: number): State {
  const next = (state.runs[run]?.live ?? -1) + 1;
  if (state.attempts[next]?.run !== run) return changeRun(state, run, { live: -1, phase: 'gave up' });
  return change(changeRun(state, run, { live: next }), next, { next: 'claim' });
}

/** What Temporal and another worker do about the first run's end. */
function endFillSteps(state: State, protocol: Protocol, { first }: World): Move[] {
  const phase = state.runs[0]?.phase;
  if (phase === 'runs' && first) {
    return [
      {
        name: `run 0 is ${first}`,
        to: changeRun(state, 0, { live: -1, phase: first === 'cancelled' ? 'cancelling' : first }),
      },
    ];
  }
  if (phase === 'cancelling') {
    const closed = changeRun(state, 0, { phase: 'closed' });
    if (protocol.endFill === 'ends backends alone') return [{ name: 'endFill leaves the claim', to: closed }];
    const holder = claimHolder(state, 0, protocol);
    if (holder >= 0) return [{ name: `endFill ends ${holder}, which holds the claim`, to: abort(state, holder) }];
    const claim = state.claims[0] ?? { scheduledAt: 0, number: 0, fence: 0 };
    return [{ name: 'endFill closes the claim', to: changeClaim(closed, 0, { ...claim, closed: true }) }];
  }
  if (phase === 'closed') {
    const open = state.attempts.findIndex((attempt) => attempt.run === 0 && isOpen(attempt));
    if (open >= 0) return [{ name: `endFill ends ${open}`, to: abort(state, open) }];
    return [{ name: 'endFill looks', to: changeRun(state, 0, { phase: hasFill(state, 0) ? 'filled' : 'cancelled' }) }];
  }
  return [];
}
