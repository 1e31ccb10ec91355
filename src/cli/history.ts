import type { Command } from 'commander';
import type { Grid } from '../calendar/calendar.js';
import { windowOf } from '../calendar/window.js';
import { Failure } from '../failure.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import type { Database } from '../warehouse/database.js';
import type { CheckOutcome } from '../warehouse/fill-request.js';
import { type StandingFinding, standingFinding } from '../warehouse/findings.js';
import { ledgerId } from '../warehouse/ledger.js';
import { type HistoryEntry, partitionHistory } from '../warehouse/partitions.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { withDatabaseAt } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { counted, duration, instant, number } from './format.js';
import type { Colors } from './output.js';
import { fileOrReason, registeredAs, urlOf } from './plan-request.js';

/** `repave history`: every fill and final failure of one partition, as the ledger has them, and what `verify` has found in it. */
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
  const { zone, window, entries, found } = await withDatabaseAt(urlOf(settings, file), async (database) => {
    await ledgerId(database);
    const grid = await gridOf(database, name, file);
    return {
      zone: grid.zone,
      window: windowOf(grid, key),
      entries: await partitionHistory(database, name, key),
      found: await standingFinding(database, name, key),
    };
  });
  const { colors } = output;
  output.document({ pipeline: name, key, window: { start: window.start, end: window.end }, found, entries });
  output.result(`${colors.bold(`${name} ${key}`)}  ${window.start} to ${window.end} (${zone})`);
  if (found) output.result(foundLines(found, colors));
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

/** What stands there, by the last look: no fill has set it right yet. */
function foundLines({ at, ledgerRows, tableRows }: StandingFinding, colors: Colors): string {
  const rows =
    tableRows === ledgerRows
      ? `other values in its ${counted(tableRows, 'row')}`
      : `${counted(tableRows, 'row')} in place of ${number(ledgerRows)}`;
  return `${colors.red('!')} ${instant(at)}  repave verify found ${rows}; it was not filled since`;
}

function lines(entry: HistoryEntry, colors: Colors): string {
  const when = `${instant(entry.at)}  run ${entry.run}, attempt ${entry.attempt}`;
  const origin = originOf(entry).map((text) => `  ${text}`);
  switch (entry.kind) {
    case 'fill': {
      const what = entry.unchanged ? 'unchanged, none written' : `in place of ${number(entry.deleted)}`;
      const rows = entry.adopted
        ? `${counted(entry.rows, 'row')} that stood there were adopted`
        : `${counted(entry.rows, 'row')} ${what}, in ${duration(entry.seconds)}`;
      const checks = entry.checks.map(checkLine);
      // What was let through is said by its check.
      const warnings = entry.warnings
        .filter((warning) => !warning.startsWith('check: '))
        .map((warning) => `! ${warning}`);
      return [
        `${colors.green('✓')} ${when}`,
        ...origin,
        ...[rows, ...checks, ...warnings].map((text) => `  ${text}`),
      ].join('\n');
    }
    case 'failure':
      return [`${colors.red('✗')} ${when}`, ...origin, `  ${entry.type}: ${entry.message}`].join('\n');
  }
}

/** Who brought it about and as part of what, in at most one line; nothing where an older version kept neither. */
function originOf({ startedBy, backfill, backfillId }: HistoryEntry): string[] {
  const parts = [
    ...(startedBy === null ? [] : [`started by ${startedBy}`]),
    ...(backfill === null
      ? []
      : [`part of ${backfillId ?? `a backfill that the ledger has no more (run ${backfill})`}`]),
  ];
  return parts.length > 0 ? [parts.join(', ')] : [];
}

/** A check that failed and was let through is a warning: the fill stands. */
function checkLine({ check, passed, severity, seen }: CheckOutcome): string {
  return `${passed ? '✓' : severity === 'warn' ? '!' : '✗'} ${check}: ${seen}`;
}
