// Lint rules. Beside the usual ones they hold the direction of imports (CONTRIBUTING.md has the map) and keep out of
// workflows everything that would break their replay.
import eslint from '@eslint/js';
import { defineConfig } from 'eslint/config';
import tseslint from 'typescript-eslint';

/** Packages that must not come with what other programs import. */
const HEAVY = {
  regex: '^(?:pg|pg-.*|libpg-query|zod|pino|commander|@temporalio/(?:worker|activity|testing))(?:/|$)',
  message: 'Other programs import this file: it brings in no database driver, no worker and no command.',
};
const TEMPORAL = { regex: '^@temporalio/', message: 'Nothing here knows Temporal.' };
const DEV = {
  regex: '(?:^|/)dev/',
  message: 'What we start on this machine for development is for cli/dev, demo and temporal alone.',
};

/** `files` may import, of ours, their own folder and what `allowed` (a pattern on the path below src/) matches. */
function folder(name, allowed, ...banned) {
  const regex = `^(?:\\.\\./)+(?!\\.\\./)(?!(?:${allowed.join('|') || '$'}))`;
  const message = `${name} imports only ${allowed.join(', ') || 'its own folder'}: see the map in CONTRIBUTING.md.`;
  return restrict([`src/${name}/**/*.ts`], [{ regex, message }, ...banned]);
}

/** The same for files that stand in src/ itself. */
function rootFile(name, allowed, ...banned) {
  const message = `${name} imports only ${allowed.join(', ') || 'nothing of ours'}: see the map in CONTRIBUTING.md.`;
  return restrict(
    [`src/${name}`],
    [{ regex: `^\\./(?!(?:${allowed.join('|') || '$'}))|^\\.\\./`, message }, ...banned],
  );
}

function restrict(files, patterns) {
  return { files, rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] } };
}

const BASE = ['contract\\.js$', 'failure\\.js$'];

const importArrow = [
  rootFile('contract.ts', ['contract/'], { regex: '^[^.]', message: 'The contract holds types and constants only.' }),
  folder('contract', [], { regex: '^[^.]', message: 'The contract holds types and constants only.' }),
  rootFile('failure.ts', ['contract\\.js$'], HEAVY, TEMPORAL),
  rootFile('process-identity.ts', [], HEAVY, TEMPORAL),
  rootFile('settings.ts', ['process-identity\\.js$', ...BASE], HEAVY),
  rootFile('index.ts', ['pipeline/', 'calendar/', ...BASE], HEAVY, TEMPORAL),
  rootFile('client.ts', ['client/', 'temporal/', 'settings\\.js$', ...BASE], HEAVY),
  folder('client', ['temporal/', 'settings\\.js$', ...BASE], HEAVY),
  folder('calendar', [], TEMPORAL),
  folder('pipeline', ['calendar/', ...BASE], TEMPORAL),
  folder('warehouse', ['pipeline/', 'calendar/', ...BASE], TEMPORAL),
  folder('plan', ['warehouse/', 'pipeline/', 'calendar/', ...BASE], TEMPORAL),
  folder('temporal', ['settings\\.js$', ...BASE], HEAVY),
  folder('telling', ['settings\\.js$', ...BASE], HEAVY, TEMPORAL),
  folder('telemetry', ['settings\\.js$', ...BASE], DEV),
  folder('activities', ['plan/', 'warehouse/', 'pipeline/', 'calendar/', 'telemetry/', 'telling/', ...BASE]),
  restrict(
    ['src/worker.ts', 'src/worker/**/*.ts'],
    [
      {
        regex: '/(?:cli|dev|page)(?:/|\\.js$)|/client\\.js$',
        message: 'A worker needs neither the command nor the client.',
      },
    ],
  ),
  folder(
    'cli',
    [
      'client\\.js$',
      'plan/',
      'warehouse/',
      'pipeline/',
      'calendar/',
      'temporal/',
      'telemetry/',
      'telling/',
      'settings\\.js$',
      ...BASE,
    ],
    {
      regex: '/warehouse/(?:fill|end-fill|record-failure)\\.js$',
      message: 'The command looks at the warehouse and changes it through the client.',
    },
  ),
  // The two ends of the arrow: what they start is theirs to import.
  restrict(
    [
      'src/cli/worker.ts',
      'src/cli/dev.ts',
      'src/cli/demo.ts',
      'src/cli/demo-heal.ts',
      'src/cli/demo-end.ts',
      'src/cli/temporal.ts',
    ],
    [{ regex: '/(?:activities|workflows)/', message: 'The command starts workers, it is none.' }],
  ),
  {
    files: ['src/workflows/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        {
          patterns: [
            {
              regex: '^(?:\\.\\./)+(?!\\.\\./)(?!contract\\.js$|failure\\.js$|activities/)',
              message: 'Workflows import the contract and the types of activities, nothing else of ours.',
            },
            {
              regex: '/activities/',
              allowTypeImports: true,
              message: 'Import activities as types: their code cannot run in a workflow.',
            },
            {
              regex: '^(?!\\.|@temporalio/(?:workflow|common)$)',
              message:
                'Workflows run in a sandbox and are replayed: no Node built-ins, drivers, schema or time zone libraries.',
            },
          ],
        },
      ],
      'no-restricted-globals': [
        'error',
        ...['process', 'Buffer', 'require', 'fetch', 'performance'].map((name) => ({
          name,
          message: 'Not there in a workflow, or not the same at replay.',
        })),
        ...['Intl', 'Temporal'].map((name) => ({
          name,
          message: 'Time zones and dates are worked out in activities: zone data differ between workers.',
        })),
      ],
      'no-restricted-syntax': [
        'error',
        { selector: 'ImportExpression', message: 'No dynamic imports in a workflow.' },
        {
          selector: "NewExpression[callee.name='Date'][arguments.length>1]",
          message: 'Reads the process’s time zone, which differs between workers.',
        },
        {
          selector:
            'MemberExpression[property.name=/^(?:getTimezoneOffset|(?:get|set)(?:FullYear|Month|Date|Day|Hours|Minutes)|toLocale\\w*String|to(?:Date|Time)String)$/]',
          message:
            'Reads the process’s time zone or locale, which differs between workers. Zones are worked out in activities.',
        },
      ],
    },
  },
];

export default defineConfig(
  { ignores: ['dist/', 'build/', '.repave/', 'node_modules/', 'test/fixtures/', 'test/histories/'] },
  eslint.configs.recommended,
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommendedTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { project: ['tsconfig.test.json'], tsconfigRootDir: import.meta.dirname } },
    rules: {
      eqeqeq: 'error',
      'no-console': 'error',
      'object-shorthand': 'error',
      'no-promise-executor-return': 'off',
      '@typescript-eslint/consistent-type-imports': ['error', { fixStyle: 'inline-type-imports' }],
      '@typescript-eslint/explicit-module-boundary-types': 'error',
      '@typescript-eslint/no-deprecated': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-import-type-side-effects': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', caughtErrors: 'none' },
      ],
      '@typescript-eslint/restrict-template-expressions': [
        'error',
        { allowNumber: true, allowBoolean: true, allowNullish: true },
      ],
      '@typescript-eslint/return-await': ['error', 'error-handling-correctness-only'],
      '@typescript-eslint/strict-boolean-expressions': 'off',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/require-await': 'off',
      '@typescript-eslint/prefer-nullish-coalescing': 'off',
    },
  },
  ...importArrow,
  {
    files: ['src/cli.ts', 'src/cli/**/*.ts', 'src/dev/**/*.ts', 'test/**/*.ts', 'bench/**/*.ts'],
    rules: { 'no-console': 'off' },
  },
  {
    files: ['test/**/*.ts', 'bench/**/*.ts'],
    rules: {
      // Mocha's own way of using functions; and a test may assert on what it has just put there.
      '@typescript-eslint/explicit-module-boundary-types': 'off',
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
    },
  },
  {
    files: ['**/*.js', '**/*.cjs'],
    languageOptions: {
      globals: {
        process: 'readonly',
        console: 'readonly',
        URL: 'readonly',
        Buffer: 'readonly',
        setTimeout: 'readonly',
      },
    },
  },
  {
    files: ['**/*.cjs'],
    languageOptions: {
      sourceType: 'commonjs',
      globals: { require: 'readonly', module: 'writable', __dirname: 'readonly' },
    },
  },
);
