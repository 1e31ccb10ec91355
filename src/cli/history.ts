import type { Command } from 'commander';
import type { Grid } from '../calendar/calendar.js';
import { windowOf } from '../calendar/window.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from '../warehouse/database.js';
import { ledgerId } from '../warehouse/ledger.js';
import { type HistoryEntry, partitionHistory } from '../warehouse/partitions.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { withDatabaseAt } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted, duration, instant, number } from './format.js';
import type { Colors } from './output.js';
import { fileOrReason, registeredAs, urlOf } from './plan-request.js';

/** `repave history`: every fill and final failure of one partition, as the ledger has them. */
export function registerHistory(program: Command): void {
  addCommand(program, 'history <pipeline> <key>', {
    summary: 'list the fills and failures of one partition',
    examples: ['repave history sales_summary 1997-01-01', 'repave history sales_summary 1997-01-01 --json'],
  }).action(runs(history));
}

async function history(
  { settings, output }: Context,
  [name, key]: readonly [string, string],
  _options: CommonOptions,
): Promise<ExitCode> {
  const file = await fileOrReason(settings, name);
  if (!(file instanceof Failure)) windowOf(file.partition, key);
  const { zone, window, entries } = await withDatabaseAt(urlOf(settings, file), async (database) => {
    await ledgerId(database);
    const grid = await gridOf(database, name, file);
    return { zone: grid.zone, window: windowOf(grid, key), entries: await partitionHistory(database, name, key) };
  });
  const { colors } = output;
  output.document({ pipeline: name, key, window: { start: window.start, end: window.end }, entries });
  output.result(`${colors.bold(`${name} ${key}`)}  ${window.start} to ${window.end} (${zone})`);
  for (const entry of entries) output.result(lines(entry, colors));
  if (entries.length === 0) output.say('Never filled, never failed.');
  return EXIT.done;
}

/** By the file, else as workers have registered the pipeline. Throws why there is no file where they have not. */
async function gridOf(database: Database, name: string, file: Pipeline | Failure): Promise<Grid> {
  if (!(file instanceof Failure)) return file.partition;
  const registered = await registeredAs(database, name);
  if (registered === undefined || registered === 'no ledger') throw file;
  return registered.partition;
}

function lines(entry: HistoryEntry, colors: Colors): string {
  const when = `${instant(entry.at)}  run ${entry.run}, attempt ${entry.attempt}`;
  switch (entry.kind) {
    case 'fill': {
      const rows = `${counted(entry.rows, 'row')} in place of ${number(entry.deleted)}, in ${duration(entry.seconds)}`;
      const checks = entry.checks.map(({ check, passed, seen }) => `${passed ? '✓' : '✗'} ${check}: ${seen}`);
      const warnings = entry.warnings.map((warning) => `! ${warning}`);
      return [`${colors.green('✓')} ${when}`, `  ${rows}`, ...[...checks, ...warnings].map((text) => `  ${text}`)].join(
        '\n',
      );
    }
    case 'failure':
      return `${colors.red('✗')} ${when}\n  ${entry.type}: ${entry.message}`;
  }
}
