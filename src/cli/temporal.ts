import type { Command } from 'commander';
import { settingsFor } from './command.js';

/** `repave temporal …`: Temporal's own command line, at the server that Repave uses here. */
export function registerTemporal(program: Command): void {
  program
    .command('temporal [arguments...]')
    .description("run Temporal's own command line against the servers in use here")
    .helpOption(false)
    .allowUnknownOption()
    .passThroughOptions()
    .addHelpText('beforeAll', `  $ repave temporal workflow list\n`)
    .action(async (given: readonly string[]) => {
      // Loaded here alone: no other command needs what finds and runs the CLI.
      const { findTemporal, runTemporal } = await import('../dev/run-temporal.js');
      const settings = settingsFor({});
      const cli = await findTemporal(settings, (line) => process.stderr.write(`${line}\n`));
      process.exitCode = await runTemporal(cli, given, settings);
    });
}
