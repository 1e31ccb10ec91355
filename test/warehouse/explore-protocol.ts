import { initial, type Protocol, type State, type World } from './protocol-model.js';
import { type Step, stepsFrom } from './protocol-steps.js';

export interface Exploration {
  /** States seen: all there are, where nothing is broken. */
  readonly states: number;
  /** How the runs can end, each once. */
  readonly endings: readonly string[];
  /** The first promise found broken, and a shortest way there. */
  readonly broken?: { readonly promise: string; readonly way: readonly string[] };
}

/**
 * Visits every state that can be reached, nearest first, and checks in each what is promised: one copy of the rows, those of
 * the last fill; at most one fill a run; no older attempt's commit after a newer began, none after a cancel; no live attempt
 * fails as stale, or is ended by another run; and no run is held up by a frozen attempt: its own not at all, another's not for
 * ever.
 */
export function explore(protocol: Protocol, world: World): Exploration {
  const start = initial(world);
  const seen = new Set([keyOf(start)]);
  const endings = new Set<string>();
  let edge: Visit[] = [{ state: start }];
  while (edge.length > 0) {
    const next: Visit[] = [];
    for (const visit of edge) {
      const steps = stepsFrom(visit.state, protocol, world);
      const promise = brokenIn(visit.state, steps);
      if (promise) return { states: seen.size, endings: [...endings], broken: { promise, way: wayTo(visit) } };
      if (steps.length === 0) endings.add(visit.state.runs.map(({ phase }) => phase).join(', '));
      for (const { name, to } of steps) {
        const key = keyOf(to);
        if (seen.has(key)) continue;
        seen.add(key);
        next.push({ state: to, name, from: visit });
      }
    }
    edge = next;
  }
  return { states: seen.size, endings: [...endings].sort() };
}

interface Visit {
  readonly state: State;
  readonly name?: string;
  readonly from?: Visit;
}

/** A state as text. What never changes, such as an attempt's run, is left out. */
function keyOf({ attempts, runs, claims, rows, fills, broken }: State): string {
  const parts = attempts.map(
    (a) =>
      `${a.next} ${a.fence} ${a.backend} ${a.holdsWindow ? 'w' : ''}${a.holdsClaim ? 'c' : ''}${a.overdue ? 'o' : ''} ${a.snapshot.join()} ${a.deleted.join()}`,
  );
  for (const { live, phase } of runs) parts.push(`${live} ${phase}`);
  for (const claim of claims)
    parts.push(claim ? `${claim.fence} ${claim.scheduledAt}.${claim.number} ${claim.closed}` : '');
  return [...parts, rows.join(), fills.join(), broken].join('|');
}

function wayTo(visit: Visit): string[] {
  return visit.from ? [...wayTo(visit.from), visit.name ?? ''] : [];
}

function brokenIn(state: State, steps: readonly Step[]): string | undefined {
  if (state.broken) return state.broken;
  const last = state.fills.at(-1) ?? -1;
  if (state.rows.length !== 1) return 'one copy of the rows';
  if (state.rows[0] !== last) return 'the rows are the last fill’s';
  const runs = state.fills.map((i) => state.attempts[i]?.run);
  if (new Set(runs).size !== runs.length) return 'one fill a run';
  const heldUp = state.runs.some(
    ({ phase }, run) =>
      (phase === 'runs' || phase === 'cancelling' || phase === 'closed') &&
      !steps.some(({ helps }) => helps === 'all' || (helps && helps.allBut !== run)),
  );
  if (heldUp) return 'a run is held up';
  return undefined;
}
