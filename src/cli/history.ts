import type { Command } from 'commander';
import { windowOf } from '../calendar/window.js';
import { loadPipeline } from '../pipeline/load.js';
import { ledgerId } from '../warehouse/ledger.js';
import { partitionHistory } from '../warehouse/partitions.js';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { pipelinesFolder, withDatabase } from './database.js';
import { EXIT, type ExitCode } from './exit.js';
import { instant, number } from './format.js';
import { table } from './table.js';

/** `repave history`: every fill and final failure of one partition, as the ledger has them. */
export function registerHistory(program: Command): void {
  addCommand(program, 'history <pipeline> <key>', {
    summary: 'say how one partition came to hold what it holds: its fills and failures',
    examples: ['repave history sales_summary 1997-01-01', 'repave history sales_summary 1997-01-01 --json'],
  }).action(runs(history));
}
