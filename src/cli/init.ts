import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import type { Command } from 'commander';
import { addCommand, type CommonOptions, type Context, runs } from './command.js';
import { EXIT, type ExitCode } from './exit.js';

const EXAMPLE = `-- repave
-- target: daily_orders
-- partition: { column: day, by: day }           # by: hour|day|week|month|quarter|year; zone: UTC unless given
-- start: 2024-01-01                             # first partition there can be
-- checks: [{ rows: { min: 1 } }, { unique: [day] }]
SELECT ordered_on AS day, count(*) AS orders, sum(amount) AS revenue
FROM   orders
WHERE  ordered_on >= :date AND ordered_on < :end_date
GROUP  BY ordered_on
`;

const ENVIRONMENT = `# What \`repave worker\` and the other commands read. Copy to .env and load it as you like; keep .env out of git.
# Where nothing is set, the commands use a running \`repave dev\`.
DATABASE_URL=postgres://user:password@localhost:5432/warehouse
TEMPORAL_ADDRESS=localhost:7233
# TEMPORAL_NAMESPACE=default
# REPAVE_TASK_QUEUE=repave
# REPAVE_FILLS=8
`;

const FILES: readonly (readonly [path: string, text: string])[] = [
  ['pipelines/example.sql', EXAMPLE],
  ['.env.example', ENVIRONMENT],
];

/** `repave init`: the first files of a project. Never overwrites one. */
export function registerInit(program: Command): void {
  addCommand(program, 'init [folder]', {
    summary: 'lay the first files of a project',
    examples: ['repave init', 'repave init warehouse'],
    after: 'Files that are there already stay as they are.',
  }).action(runs(init));
}

async function init(
  { settings, output }: Context,
  [folder]: readonly [string | undefined],
  _options: CommonOptions,
): Promise<ExitCode> {
  const project = folder === undefined ? settings.project : resolve(settings.project, folder);
  const written: string[] = [];
  const kept: string[] = [];
  for (const [path, text] of FILES) {
    const file = join(project, path);
    if (existsSync(file)) {
      kept.push(path);
      continue;
    }
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, text, { flag: 'wx' });
    written.push(path);
  }
  output.document({ project, written, kept });
  const shown = (path: string): string => (folder === undefined ? path : join(folder, path));
  for (const path of written) output.result(`${output.colors.green('wrote')} ${shown(path)}`);
  for (const path of kept) output.result(`${output.colors.dim('kept ')} ${shown(path)}`);
  const enter = relative(process.cwd(), project) === '' ? '' : `\`cd ${relative(process.cwd(), project)}\`, `;
  output.say(
    `Next: ${enter}say in pipelines/example.sql what your table’s rows are, then \`repave dev\` and \`repave check\`.`,
  );
  return EXIT.done;
}
