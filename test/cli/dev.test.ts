import assert from 'node:assert/strict';
import { nextCommands } from '../../src/cli/dev.js';

describe('repave dev', () => {
  it('goes on with a pipeline of the project, and with a first one where it has none', () => {
    const commands = nextCommands('nightly', 'mart/orders');
    assert.deepEqual(
      commands.map((command) => command.includes('mart/orders')),
      [true, true, true],
    );
    assert.match(commands[1] ?? '', /--task-queue nightly .*'\{"pipeline":"mart\/orders","last":7\}'$/);
    assert.doesNotMatch(commands.join(), /sales_summary/);
    assert.match(nextCommands('repave', 'sales_summary')[0] ?? '', /plan sales_summary --from 1997-01-01/);
    assert.equal(nextCommands('repave', undefined)[0], 'npx repave init');
  });
});
