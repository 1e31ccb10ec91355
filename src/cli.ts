/** The command `repave`: reads its arguments, runs one command, and ends with its exit code. */
import { CommanderError } from 'commander';
import { tell } from './cli/exit.js';
import { createOutput } from './cli/output.js';
import { createProgram } from './cli/program.js';

/** Milliseconds that something left open may hold the process after its command has ended. */
const LEFT_OPEN_MS = 2_000;

// `repave status | head`: the reader has seen enough.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(process.exitCode);
  throw error;
});

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  // Help and version come as errors too, and have been written.
  if (!(error instanceof CommanderError && error.exitCode === 0)) {
    const told = tell(error);
    const output = createOutput({ json: process.argv.includes('--json'), color: !process.argv.includes('--no-color') });
    output.document({ error: { type: told.type, message: told.message } });
    output.say(`${output.errorColors.red('✗')} ${told.message}`);
    process.exitCode = told.exitCode;
  } else {
    process.exitCode = 0;
  }
}
setTimeout(() => process.exit(), LEFT_OPEN_MS).unref();
