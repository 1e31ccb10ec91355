import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { silenceRuntime, workflowBundle } from '../support/workflow.js';

const FOLDER = new URL('../histories/', import.meta.url);
const FILES = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));

/** Runs the workflows of today over a history, as a worker does with a run that an older one has begun. */
async function replay(history: string): Promise<void> {
  const events = JSON.parse(history) as {
    events: { workflowExecutionStartedEventAttributes?: { workflowId?: string } }[];
  };
  const workflowId = events.events[0]?.workflowExecutionStartedEventAttributes?.workflowId;
  await Worker.runReplayHistory({ workflowBundle: await workflowBundle() }, events, workflowId);
}

describe('recorded histories', () => {
  before(silenceRuntime);

  it('are of every kind: continued as new, cancelled, failed, waited', () => {
    const kinds = ['continued-1', 'continued-2', 'continued-cancelled', 'cancelled', 'failed', 'waited', 'not-ready'];
    for (const kind of [
      ...kinds,
      'batches-continued-2',
      'batches-cancelled',
      'batch-filled',
      'batch-given-up',
      'heal-stopped',
    ]) {
      assert.ok(
        FILES.some((name) => name.includes(kind)),
        kind,
      );
    }
  });

  for (const name of FILES) {
    it(`replay: ${name}`, async () => replay(readFileSync(new URL(name, FOLDER), 'utf8')));
  }

  it('do not replay once a workflow does otherwise', async () => {
    const name = FILES.find((file) => file.includes('continued-1')) ?? '';
    const history = readFileSync(new URL(name, FOLDER), 'utf8');
    const changed = history.replaceAll('"planBackfill"', '"planOtherwise"');
    assert.notEqual(changed, history);
    await assert.rejects(replay(changed), DeterminismViolationError);
  });
});
