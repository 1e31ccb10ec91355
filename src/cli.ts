/** The command `repave`: reads its arguments, runs one command, and ends with its exit code. */
import { AsyncResource } from 'node:async_hooks';
import { CommanderError } from 'commander';
import { EXIT, type ExitCode, tell } from './cli/exit.js';
import { createOutput } from './cli/output.js';
import { createProgram } from './cli/program.js';
import { containExit } from './warehouse/source-being-read.js';

/** Milliseconds that something left open may hold the process after its command has ended. */
const LEFT_OPEN_MS = 2_000;

const endWithoutOutput = (error: NodeJS.ErrnoException): void => {
  // `repave status | head`: the reader has seen enough.
  if (error.code === 'EPIPE') process.exit(process.exitCode);
  process.stderr.write(
    `✗ Standard output cannot be written (${error.code}): the result is lost. Mend where it goes.\n`,
  );
  process.exit(EXIT.wrong);
};
// Bound, since a pipeline's code that logs would be taken for who ends the process.
process.stdout.on('error', AsyncResource.bind(endWithoutOutput));
containExit();
// Nobody reads the progress: the command and its result go on.
process.stderr.on('error', () => undefined);

try {
  await createProgram().parseAsync(process.argv);
} catch (error) {
  process.exitCode = tellToTheEnd(error);
}
setTimeout(() => process.exit(), LEFT_OPEN_MS).unref();

function tellToTheEnd(error: unknown): ExitCode {
  if (error instanceof CommanderError) {
    // Help and version come as errors too, and have been written; so has the help that a bare `repave` gets.
    if (error.exitCode === 0) return EXIT.done;
    if (error.code === 'commander.help') return EXIT.wrong;
  }
  const told = tell(error);
  const output = createOutput({ json: process.argv.includes('--json'), color: !process.argv.includes('--no-color') });
  output.document({ error: { type: told.type, message: told.message } });
  output.say(`${output.errorColors.red('✗')} ${told.message}`);
  return told.exitCode;
}
