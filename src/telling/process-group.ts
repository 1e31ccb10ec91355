import { setTimeout as sleep } from 'node:timers/promises';

/** Milliseconds that processes which were asked to end have until they are killed. */
const GRACE_MS = 2_000;
const LOOK_EVERY_MS = 20;

/**
 * Ends what is left of a process group, with or without its leader: by SIGTERM, and by SIGKILL what has not heeded that within
 * two seconds. Returns once nothing is left, or is told to go. Its number is given to no other group while one of it is there.
 */
export async function endGroup(leader: number): Promise<void> {
  if (!signalled(leader, 'SIGTERM')) return;
  for (const until = Date.now() + GRACE_MS; Date.now() < until;) {
    await sleep(LOOK_EVERY_MS);
    if (!signalled(leader, 0)) return;
  }
  signalled(leader, 'SIGKILL');
}

/** Whether there is still one to signal. */
function signalled(leader: number, signal: NodeJS.Signals | 0): boolean {
  try {
    process.kill(-leader, signal);
    return true;
  } catch {
    return false;
  }
}
