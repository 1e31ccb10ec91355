// Builds build/image/: what the Dockerfile copies. Compiled sources, pipelines and production packages alone: no servers
// for development, no compilers, no tests.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const image = `${root}build/image`;

/** Runs a program to its end, its words shown; ends this one with the same code where it fails. */
function run(command, args, cwd) {
  const { status, error } = spawnSync(command, args, { cwd, stdio: 'inherit' });
  if (error) throw error;
  if (status !== 0) process.exit(status ?? 1);
}

rmSync(image, { recursive: true, force: true });
mkdirSync(image, { recursive: true });
for (const path of ['package.json', 'package-lock.json', 'LICENSE', 'bin', 'pipelines']) {
  if (existsSync(`${root}${path}`)) cpSync(`${root}${path}`, `${image}/${path}`, { recursive: true });
}
run(process.execPath, ['scripts/build.js', 'build/image/dist'], root);

// Packages' own scripts fetch what only development needs. Optional packages are the servers for development, and
// binaries of compilers that the prebuilt workflow bundle makes needless.
run(
  'npm',
  ['ci', '--omit=dev', '--omit=optional', '--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'],
  image,
);
