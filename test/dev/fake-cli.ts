import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';

/** A folder of a test's own below the system's temporary one. */
export function temporaryFolder(): string {
  return mkdtempSync(join(tmpdir(), 'repave-fake-'));
}

/** Writes a shell script that can be run, and returns its path. */
export function script(path: string, body: string): string {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `#!/bin/sh\n${body}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** What answers like Temporal's CLI of a version, and can do nothing else. */
export function fakeCli(path: string, version: string): string {
  return script(
    path,
    `[ "$1" = --version ] && { echo "temporal version ${version}"; exit 0; }; echo "no server in here" >&2; exit 7`,
  );
}

/** An environment in which nothing is found and nothing can be fetched: what a test puts into `path` is all there is. */
export function offline(path: string, extra: Record<string, string> = {}): Record<string, string> {
  return { PATH: path, HTTPS_PROXY: 'http://127.0.0.1:9', https_proxy: 'http://127.0.0.1:9', ...extra };
}
