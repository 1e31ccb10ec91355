import { resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { type Environment, loadSettings, type Settings } from '../settings.js';
import type { ExitCode } from './exit.js';
import { createOutput, type Output } from './output.js';

/** What every command is handed: its settings and where its words go. */
export interface Context {
  readonly settings: Settings;
  readonly output: Output;
}

/** Options that every command takes. */
export interface CommonOptions {
  readonly json?: boolean;
  readonly color?: boolean;
  readonly project?: string;
  readonly address?: string;
  readonly namespace?: string;
  readonly taskQueue?: string;
}

export interface CommandHelp {
  readonly summary: string;
  /** Command lines that the help text begins with. */
  readonly examples: readonly string[];
  /** Said after the options: what the exit code means here, or where to go on. */
  readonly after?: string;
}

/** Adds a command with the options that all have, and help that leads with its examples. */
export function addCommand(program: Command, nameAndArguments: string, help: CommandHelp): Command {
  return describeCommand(program.command(nameAndArguments), help)
    .addOption(new Option('--json', 'write JSON to standard output, for programs'))
    .addOption(new Option('--no-color', 'no colour (also: NO_COLOR=1)'))
    .addOption(new Option('--project <folder>', 'folder that holds pipelines/ (default: REPAVE_PROJECT, else here)'));
}

/** Gives a command, or a group of them, its summary and help that leads with its examples. */
export function describeCommand(command: Command, { summary, examples, after }: CommandHelp): Command {
  command.description(summary).addHelpText('before', `${examples.map((example) => `  $ ${example}`).join('\n')}\n`);
  return after ? command.addHelpText('after', `\n${after}`) : command;
}

/** Adds the options that say which Temporal server and task queue a command uses. */
export function withTemporal(command: Command): Command {
  return withTemporalServer(command).option(
    '--task-queue <name>',
    'task queue of the workers (default: REPAVE_TASK_QUEUE, else `repave`)',
  );
}

/** Adds the options that say which Temporal server a command uses. */
export function withTemporalServer(command: Command): Command {
  return command
    .option('--address <host:port>', "Temporal's frontend (default: TEMPORAL_ADDRESS, else a running `repave dev`)")
    .option('--namespace <name>', 'its namespace (default: TEMPORAL_NAMESPACE, else `default`)');
}

/**
 * Makes a command's function one that commander calls: settings are read with the flags laid over them, and the exit code
 * it returns is the process's.
 */
export function runs<Arguments extends readonly unknown[], Options extends CommonOptions>(
  handler: (context: Context, given: Arguments, options: Options) => Promise<ExitCode>,
): (this: Command) => Promise<void> {
  return async function () {
    const options = this.opts<Options>();
    const given = this.processedArgs as unknown as Arguments;
    const context = { settings: settingsFor(options), output: createOutput(options) };
    process.exitCode = await handler(context, given, options);
  };
}

/** Flag, else environment, else a running `repave dev`, else default: a flag stands in for its variable. */
export function settingsFor(options: CommonOptions, env: Environment = process.env): Settings {
  const laid: Environment = {
    ...env,
    ...(options.address !== undefined && { TEMPORAL_ADDRESS: options.address }),
    ...(options.namespace !== undefined && { TEMPORAL_NAMESPACE: options.namespace }),
    ...(options.taskQueue !== undefined && { REPAVE_TASK_QUEUE: options.taskQueue }),
  };
  return loadSettings(laid, resolve(options.project ?? laid.REPAVE_PROJECT ?? '.'));
}
