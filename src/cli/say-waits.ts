import type { BackfillHandle } from '../client.js';
import { type Sight, waitsFor } from './sight.js';

/** Milliseconds without any change, after which it is asked what a backfill waits for. */
const QUIET_MS = 15_000;
/** Running children that are asked, so that asking stays cheap. */
const ASKED = 10;

/** Watches over a follower's silence. */
export interface WaitTeller {
  /** Something has changed. */
  seen(sight: Sight): void;
  stop(): void;
}

/**
 * Says, each time nothing has changed for 15 s, why a backfill and its running partitions are to be tried again, in the words
 * of their last failure; the same words once. Nothing while attempts run, and nothing where Temporal cannot be asked.
 */
export function sayWaits(handle: BackfillHandle, say: (text: string) => void): WaitTeller {
  const said = new Set<string>();
  let running: Sight['progress']['running'] = [];
  let stopped = false;
  const look = async (): Promise<void> => {
    const keys = running.slice(0, ASKED).map((child) => child.keys);
    for (const attempt of await handle.attempts({ keys }).catch(() => [])) {
      const reason = waitsFor(attempt);
      if (stopped || reason === undefined || said.has(reason)) continue;
      said.add(reason);
      say(`${attempt.keys ?? 'the backfill'} waits: ${reason}`);
    }
  };
  const timer = setInterval(() => void look(), QUIET_MS);
  return {
    seen({ progress }) {
      running = progress.running;
      timer.refresh();
    },
    stop() {
      stopped = true;
      clearInterval(timer);
    },
  };
}
