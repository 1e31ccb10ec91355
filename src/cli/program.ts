import { Command } from 'commander';
import { registerAdopt } from './adopt.js';
import { registerBackfill } from './backfill.js';
import { registerCancel } from './cancel.js';
import { registerCheck } from './check.js';
import { registerConcurrency } from './concurrency.js';
import { registerDemo } from './demo.js';
import { registerDeploy } from './deploy.js';
import { registerDev } from './dev.js';
import { registerDoctor } from './doctor.js';
import { registerHistory } from './history.js';
import { registerInit } from './init.js';
import { registerMigrate } from './migrate.js';
import { registerNotify } from './notify.js';
import { packageVersion } from './package-version.js';
import { registerPause } from './pause.js';
import { registerPipelines } from './pipelines.js';
import { registerPlan } from './plan.js';
import { registerPrune } from './prune.js';
import { registerResume } from './resume.js';
import { registerRetry } from './retry.js';
import { registerSchedule } from './schedule.js';
import { registerStatus } from './status.js';
import { registerStop } from './stop.js';
import { registerTemporal } from './temporal.js';
import { registerTry } from './try.js';
import { registerVerify } from './verify.js';
import { registerWatch } from './watch.js';
import { registerWorker } from './worker.js';

const GROUPS: readonly (readonly [heading: string, register: readonly ((program: Command) => void)[]])[] = [
  ['On this machine:', [registerDev, registerDemo, registerInit, registerTemporal]],
  ['Pipelines:', [registerPipelines, registerCheck, registerTry, registerAdopt]],
  ['Filling:', [registerPlan, registerBackfill, registerWatch]],
  ['By itself:', [registerSchedule, registerDeploy]],
  ['Steering:', [registerPause, registerResume, registerConcurrency, registerStop, registerRetry, registerCancel]],
  ['Looking:', [registerStatus, registerHistory, registerVerify]],
  ['Running it:', [registerWorker, registerMigrate, registerPrune, registerNotify, registerDoctor]],
];

/** The command `repave` with all its commands. Errors are thrown as commander's `CommanderError`, never end the process. */
export function createProgram(): Command {
  const program = new Command('repave')
    .description('Durable, exactly-once backfills of date-partitioned PostgreSQL tables, on Temporal.')
    .version(packageVersion(), '-V, --version')
    .helpOption('-h, --help', 'say how')
    .showSuggestionAfterError(true)
    // `repave temporal` hands all that follows it on, options included.
    .enablePositionalOptions()
    .exitOverride()
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .configureOutput({ outputError: () => undefined });
  program.addHelpText(
    'before',
    '  $ repave plan sales_summary --from 1997-01-01 --to 1997-01-31\n  $ repave backfill sales_summary 1997-01-01..1997-01-31\n',
  );
  program.addHelpText(
    'after',
    '\nExit codes: 0 done; 1 ended but not whole, or a check found something; 2 the request or the set-up was wrong;\n' +
      '3 a server could not be reached; 70 a defect of Repave; 130 Ctrl-C.',
  );
  for (const [heading, registrations] of GROUPS) {
    program.commandsGroup(heading);
    for (const register of registrations) register(program);
  }
  program.helpCommand('help [command]', 'say how a command is used');
  return program;
}
