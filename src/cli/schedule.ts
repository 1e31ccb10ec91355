import type { Command } from 'commander';
import { describeCommand } from './command.js';
import { registerScheduleAdd } from './schedule-add.js';
import { registerScheduleList } from './schedule-list.js';
import { registerSchedulePause, registerScheduleRemove, registerScheduleResume } from './schedule-steering.js';

/** `repave schedule`: fills and heals a pipeline by itself, by Temporal's own schedules. */
export function registerSchedule(program: Command): void {
  const group = describeCommand(program.command('schedule'), {
    summary: 'fill and heal a pipeline by itself: add, list, pause, resume, remove',
    examples: ["repave schedule add sales_summary --cron '15 2 * * *' --heal 30", 'repave schedule list'],
    after:
      'A `schedule:` in the pipeline’s file is the other way: `repave deploy` brings Temporal in line with the files.',
  });
  registerScheduleAdd(group);
  registerScheduleList(group);
  registerSchedulePause(group);
  registerScheduleResume(group);
  registerScheduleRemove(group);
}
