import assert from 'node:assert/strict';
import { failedAs, Harness } from './harness.js';
import { eventsOf, failedTasks, scripted } from './scripted.js';

describe('a workflow type that every object has as a property', () => {
  const harness = new Harness();

  it('is as unknown as any other', async () => {
    const taskQueue = await harness.workers(scripted());
    for (const type of ['constructor', 'toString', 'hasOwnProperty', '__proto__', '__esModule', 'default', 'nothing']) {
      const handle = await harness.client.workflow.start(type, { taskQueue, workflowId: `test/${taskQueue}/${type}` });
      await assert.rejects(handle.result(), failedAs('InvalidInput', JSON.stringify(type)), type);
      assert.deepEqual(failedTasks(await eventsOf(handle)), []);
    }
  });
});
