import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { ESLint } from 'eslint';

// Under CI the parser would take each file's text once, and not see the text that a test puts in its place.
process.env.TSESTREE_SINGLE_RUN = 'false';

const root = fileURLToPath(new URL('../..', import.meta.url));

interface Case {
  /** A folder or file below src/ where the text is put. */
  readonly place: string;
  readonly text: string;
  readonly rule: string;
}

const IMPORTS = '@typescript-eslint/no-restricted-imports';

const refused: readonly Case[] = [
  // The direction of imports.
  { place: 'contract.ts', text: `import { Failure } from './failure.js';\nvoid Failure;`, rule: IMPORTS },
  { place: 'contract.ts', text: `import { z } from 'zod';\nvoid z;`, rule: IMPORTS },
  { place: 'failure.ts', text: `import { loadSettings } from './settings.js';\nvoid loadSettings;`, rule: IMPORTS },
  { place: 'calendar', text: `import { Failure } from '../failure.js';\nvoid Failure;`, rule: IMPORTS },
  { place: 'pipeline', text: `import { fill } from '../warehouse/fill.js';\nvoid fill;`, rule: IMPORTS },
  { place: 'warehouse', text: `import { log } from '@temporalio/activity';\nvoid log;`, rule: IMPORTS },
  { place: 'warehouse', text: `import { resolvePlan } from '../plan/resolve.js';\nvoid resolvePlan;`, rule: IMPORTS },
  { place: 'plan', text: `import { connect } from '../temporal/connection.js';\nvoid connect;`, rule: IMPORTS },
  { place: 'activities', text: `import { backfill } from '../workflows/backfill.js';\nvoid backfill;`, rule: IMPORTS },
  { place: 'telling', text: `import { fill } from '../warehouse/fill.js';\nvoid fill;`, rule: IMPORTS },
  { place: 'client.ts', text: `import pg from 'pg';\nvoid pg;`, rule: IMPORTS },
  { place: 'client.ts', text: `import { fill } from './warehouse/fill.js';\nvoid fill;`, rule: IMPORTS },
  { place: 'client.ts', text: `import { Worker } from '@temporalio/worker';\nvoid Worker;`, rule: IMPORTS },
  { place: 'cli', text: `import { fill } from '../warehouse/fill.js';\nvoid fill;`, rule: IMPORTS },
  { place: 'cli', text: `import { backfill } from '../workflows/backfill.js';\nvoid backfill;`, rule: IMPORTS },
  { place: 'cli', text: `import { startDev } from '../dev/start-dev.js';\nvoid startDev;`, rule: IMPORTS },
  // Workflows.
  { place: 'workflows', text: `import { readFile } from 'node:fs/promises';\nvoid readFile;`, rule: IMPORTS },
  { place: 'workflows', text: `import fs from 'fs';\nvoid fs;`, rule: IMPORTS },
  { place: 'workflows', text: `import pg from 'pg';\nvoid pg;`, rule: IMPORTS },
  { place: 'workflows', text: `import { z } from 'zod';\nvoid z;`, rule: IMPORTS },
  { place: 'workflows', text: `import { Temporal } from 'temporal-polyfill';\nvoid Temporal;`, rule: IMPORTS },
  { place: 'workflows', text: `import { windowOf } from '../calendar/window.js';\nvoid windowOf;`, rule: IMPORTS },
  {
    place: 'workflows',
    text: `import { createActivities } from '../activities/index.js';\nvoid createActivities;`,
    rule: IMPORTS,
  },
  {
    place: 'workflows',
    text: `export const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;`,
    rule: 'no-restricted-globals',
  },
  { place: 'workflows', text: `export const home = process.env.HOME;`, rule: 'no-restricted-globals' },
  { place: 'workflows', text: `export const day = new Date(2024, 2, 10);`, rule: 'no-restricted-syntax' },
  { place: 'workflows', text: `export const offset = new Date().getTimezoneOffset();`, rule: 'no-restricted-syntax' },
  { place: 'workflows', text: `export const today = new Date().toLocaleDateString();`, rule: 'no-restricted-syntax' },
  {
    place: 'workflows',
    text: `export const load = async () => import('./backfill.js');`,
    rule: 'no-restricted-syntax',
  },
  // Everywhere.
  { place: 'settings.ts', text: `export const a: any = 1;`, rule: '@typescript-eslint/no-explicit-any' },
  { place: 'settings.ts', text: `Promise.resolve(1);`, rule: '@typescript-eslint/no-floating-promises' },
  { place: 'settings.ts', text: `export const same = (a: string, b: string): boolean => a == b;`, rule: 'eqeqeq' },
  { place: 'settings.ts', text: `console.log(1);`, rule: 'no-console' },
  {
    place: 'settings.ts',
    text: `import { Failure } from './failure.js';\nexport type F = Failure;`,
    rule: '@typescript-eslint/consistent-type-imports',
  },
  {
    place: 'settings.ts',
    text: `export function twice(n) { return n; }`,
    rule: '@typescript-eslint/explicit-module-boundary-types',
  },
  {
    place: 'settings.ts',
    text: `export function f(x: 'a' | 'b'): number { switch (x) { case 'a': return 1; } return 2; }`,
    rule: '@typescript-eslint/switch-exhaustiveness-check',
  },
];

const allowed: readonly Omit<Case, 'rule'>[] = [
  {
    place: 'workflows',
    text: `import type { createActivities } from '../activities/index.js';\nexport type A = typeof createActivities;`,
  },
  {
    place: 'workflows',
    text: `import { DEFAULTS } from '../contract.js';\nimport { sleep } from '@temporalio/workflow';\nvoid DEFAULTS;\nvoid sleep;`,
  },
  {
    place: 'warehouse',
    text: `import { Failure } from '../failure.js';\nimport pg from 'pg';\nvoid Failure;\nvoid pg;`,
  },
  { place: 'cli', text: `import { readBackfills } from '../warehouse/backfills.js';\nvoid readBackfills;` },
];

describe('lint', function () {
  this.timeout(300_000);
  const eslint = new ESLint({ cwd: root });

  for (const { place, text, rule } of refused) {
    it(`refuses in src/${place}: ${text.split('\n')[0]}`, async () => {
      const rules = await rulesBroken(eslint, place, text);
      assert.ok(rules.includes(rule), `expected ${rule}, found ${rules.join(', ') || 'nothing'}`);
    });
  }

  for (const { place, text } of allowed) {
    it(`accepts in src/${place}: ${text.split('\n')[0]}`, async () => {
      assert.deepEqual(
        (await rulesBroken(eslint, place, text)).filter((rule) => rule.includes('restricted')),
        [],
      );
    });
  }
});

async function rulesBroken(eslint: ESLint, place: string, text: string): Promise<string[]> {
  const results = await eslint.lintText(`${text}\n`, { filePath: fileAt(place) });
  const messages = results.flatMap((result) => result.messages);
  const fatal = messages.find((message) => message.fatal);
  if (fatal) throw new Error(`${place}: ${fatal.message}`);
  return messages.map((message) => message.ruleId ?? '');
}

/** Rules that use types lint only files of the project, so each text stands in for one that is there. */
function fileAt(place: string): string {
  const path = join(root, 'src', place);
  if (place.endsWith('.ts')) return path;
  // The command's two ends have rules of their own.
  const ends = ['worker.ts', 'dev.ts', 'demo.ts', 'temporal.ts'];
  const file = readdirSync(path).find((name) => name.endsWith('.ts') && !(place === 'cli' && ends.includes(name)));
  if (file === undefined) throw new Error(`src/${place} holds no source file`);
  return join(path, file);
}
