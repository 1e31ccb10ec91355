/**
 * JSON Schemas of what the contract's callers send and get, made from its types: one document for each input and result,
 * with the types' docstrings as descriptions and their tags (`@minimum`, `@maxItems`, …) as bounds.
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as prettier from 'prettier';
import ts from 'typescript';
import { type Schema, SchemaMaker } from './schema-maker.js';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Where the documents stand, below the checkout. */
export const SCHEMAS_FOLDER = 'docs/schemas';

interface SchemaDocument {
  /** As `src/contract.ts` exports it, or an expression over such. */
  readonly type: string;
  /** What is sent takes no unknown field; what is answered may have more in a later version. */
  readonly sent: boolean;
  /** What the fields ask of each other, which no type says. */
  readonly rules?: Schema;
}

const none = (...fields: string[]): Schema => Object.fromEntries(fields.map((field) => [field, false]));

/** Exactly one way to say which partitions; or none, with `only`. */
const BACKFILL_RULES: Schema = {
  oneOf: [
    { required: ['from'], properties: none('keys', 'last') },
    { required: ['keys'], properties: none('from', 'to', 'last') },
    { required: ['last'], properties: none('from', 'to', 'keys') },
    { required: ['only'], properties: none('from', 'to', 'keys', 'last') },
  ],
  dependentRequired: { to: ['from'], maxFailures: ['onFailure'] },
  dependentSchemas: { maxFailures: { properties: { onFailure: { enum: ['pause', 'stop'] } } } },
};

/** The one lever that must be told something. */
const STEER_RULES: Schema = {
  if: { properties: { lever: { const: 'setConcurrency' } } },
  then: { required: ['input'] },
};

/** By the name of their file, without `.json`. */
const DOCUMENTS: Readonly<Record<string, SchemaDocument>> = {
  'backfill-input': { type: 'BackfillInput', sent: true, rules: BACKFILL_RULES },
  'partition-input': { type: 'PartitionInput', sent: true },
  'pause-input': { type: "LeverInputs['pause']", sent: true },
  'resume-input': { type: "LeverInputs['resume']", sent: true },
  'set-concurrency-input': { type: "LeverInputs['setConcurrency']", sent: true },
  'stop-input': { type: "LeverInputs['stop']", sent: true },
  'retry-failed-input': { type: "LeverInputs['retryFailed']", sent: true },
  steer: { type: '{ [L in Lever]: Steer<L> }[Lever]', sent: true, rules: STEER_RULES },
  steered: { type: 'Steered', sent: false },
  progress: { type: 'Progress', sent: false },
  'backfill-result': { type: 'BackfillResult', sent: false },
  'partition-result': { type: 'PartitionResult', sent: false },
  'backfill-incomplete-details': { type: 'readonly [BackfillResult]', sent: false },
  notice: { type: 'Notice', sent: false },
};

/** Every document as its file's text, by the file's path below the checkout. */
export async function contractSchemas(): Promise<ReadonlyMap<string, string>> {
  const { checker, types } = namedTypes();
  const options = await prettier.resolveConfig(join(ROOT, SCHEMAS_FOLDER, 'x.json'));
  const texts = new Map<string, string>();
  for (const [name, { sent, rules }] of Object.entries(DOCUMENTS)) {
    const type = types.get(name);
    if (!type) throw new Error(`${name} has no type`);
    const maker = new SchemaMaker(checker, { closed: sent });
    const schema = {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      title: name,
      ...maker.schemaOf(type),
      ...rules,
      ...maker.definitions(),
    };
    const text = await prettier.format(JSON.stringify(schema), { ...options, parser: 'json' });
    texts.set(`${SCHEMAS_FOLDER}/${name}.json`, text);
  }
  return texts;
}

/** The documents' types, each as an alias in a file that is nowhere but here. */
function namedTypes(): { checker: ts.TypeChecker; types: ReadonlyMap<string, ts.Type> } {
  const path = join(ROOT, 'src/contract-schemas.ts');
  const names = Object.keys(DOCUMENTS);
  const lines = names.map((name, index) => `export type Document${index} = ${DOCUMENTS[name]?.type};`);
  const imported =
    '{ BackfillInput, BackfillResult, Lever, LeverInputs, Notice, PartitionInput, PartitionResult, Progress, Steer, Steered }';
  const text = `import type ${imported} from './contract.js';\n${lines.join('\n')}\n`;

  const config = ts.getParsedCommandLineOfConfigFile(
    join(ROOT, 'tsconfig.json'),
    {},
    {
      ...ts.sys,
      onUnRecoverableConfigFileDiagnostic: (problem) => {
        throw new Error(ts.flattenDiagnosticMessageText(problem.messageText, '\n'));
      },
    },
  );
  const options: ts.CompilerOptions = { ...config?.options, types: [], noEmit: true };
  const disk = ts.createCompilerHost(options);
  const program = ts.createProgram([path], options, {
    ...disk,
    fileExists: (file) => file === path || disk.fileExists(file),
    readFile: (file) => (file === path ? text : disk.readFile(file)),
    getSourceFile: (file, version) =>
      file === path ? ts.createSourceFile(file, text, version, true) : disk.getSourceFile(file, version),
  });
  const source = program.getSourceFile(path);
  const problems = ts.getPreEmitDiagnostics(program, source);
  if (!source || problems.length > 0) {
    throw new Error(problems.map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n')).join('\n'));
  }
  const checker = program.getTypeChecker();
  const types = new Map<string, ts.Type>();
  for (const statement of source.statements) {
    if (!ts.isTypeAliasDeclaration(statement)) continue;
    const name = names[types.size];
    if (name) types.set(name, checker.getTypeAtLocation(statement));
  }
  return { checker, types };
}
