import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import { PARTITION_STATES, type PartitionState } from '../contract.js';
import { Failure } from '../failure.js';
import { parseBackfillInput } from '../plan/parse-input.js';
import { countsText } from '../plan/plan-changed.js';
import { byKey, Comparison, type KeptPlan, type PlanDifference } from '../plan/plan-difference.js';
import { isPlanId, PlanDigest, readPlanId } from '../plan/plan-id.js';
import type { Context } from './command.js';
import { EXIT, type ExitCode } from './exit.js';
import { number } from './format.js';
import type { Output } from './output.js';
import { SCREEN_SIZE } from './plan-listing.js';
import { planRequest } from './plan-request.js';

/** Says what tells today's plan from one that was kept. Exits with 1 where they differ. */
export async function comparePlan(
  { settings, output }: Context,
  asked: { readonly pipeline: string; readonly [field: string]: unknown },
  file: string,
  options: { readonly all?: boolean; readonly csv?: boolean; readonly page?: number },
): Promise<ExitCode> {
  if (options.csv || options.page !== undefined) {
    throw new Failure(
      'InvalidInput',
      `--against and ${options.csv ? '--csv' : '--page'} are given: expected one of them.`,
    );
  }
  const kept = await readKept(file, asked.pipeline);
  const names = ['from', 'keys', 'last', 'only'].some((field) => asked[field] !== undefined);
  const input = parseBackfillInput(names ? asked : { ...kept.input, ...asked, plan: undefined }, []);
  const comparison = new Comparison(kept);
  const { plan } = await planRequest(settings, input, (page) => comparison.take(page));
  const difference = comparison.difference(plan);
  const sides = { then: side(kept.id), now: side(plan.id) };
  output.document({ pipeline: plan.pipeline, ...sides, ...difference, notes: plan.notes });
  for (const line of differenceLines(output, difference, options.all === true)) output.result(line);
  output.say(
    difference.same
      ? `The plan is the same: ${countsText(sides.now.counts)}.`
      : `Then: ${countsText(sides.then.counts)}; now: ${countsText(sides.now.counts)}. ` +
          (difference.queryChanged ? 'The query changed.' : 'The query is the same.'),
  );
  for (const note of plan.notes) output.say(note);
  return difference.same ? EXIT.done : EXIT.notWhole;
}

function side(id: string) {
  return { id, ...readPlanId(id) };
}

function differenceLines(output: Output, { came, went, changed }: PlanDifference, all: boolean): string[] {
  const { green, red, yellow } = output.colors;
  const lines = [
    ...came.map(({ key, reason }) => ({ key, line: green(`+ ${key}  ${reason}`) })),
    ...went.map(({ key, reason }) => ({ key, line: red(`- ${key}  ${reason}`) })),
    ...changed.map(({ key, from, to }) => ({ key, line: yellow(`~ ${key}  ${from} → ${to}`) })),
  ].sort(byKey);
  const shown = (output.interactive && !all ? lines.slice(0, SCREEN_SIZE) : lines).map(({ line }) => line);
  const behind = lines.length - shown.length;
  return behind > 0 ? [...shown, `and ${number(behind)} more: --all`] : shown;
}

/** A plan as `repave plan --json` has written it. */
interface KeptDocument extends KeptPlan {
  readonly input: object;
}

/** Throws `InvalidInput` for what is no plan of the pipeline, or no longer the one that was kept. */
async function readKept(file: string, pipeline: string): Promise<KeptDocument> {
  const name = file === '-' ? 'Standard input' : file;
  const kept = parsed(await content(file), name);
  if (kept.pipeline !== pipeline) {
    const of = typeof kept.pipeline === 'string' ? kept.pipeline : 'no pipeline';
    throw new Failure('InvalidInput', `${name} has a plan of ${of}: expected one of ${pipeline}.`);
  }
  const { id, partitions, input } = kept;
  if (typeof id !== 'string' || !isPlanId(id) || !Array.isArray(partitions) || typeof input !== 'object' || !input)
    throw noPlan(name, 'it has not all of a plan’s fields');
  const reasons = new Map<string, PartitionState>();
  const digest = new PlanDigest();
  for (const entry of partitions as unknown[]) {
    const { key, reason } = (entry ?? {}) as { key?: unknown; reason?: unknown };
    const state = PARTITION_STATES.find((known) => known === reason);
    if (typeof key !== 'string' || state === undefined) throw noPlan(name, 'a partition of it has no key or no reason');
    reasons.set(key, state);
    digest.add(key, state);
  }
  if (digest.toString() !== readPlanId(id).digest)
    throw noPlan(name, 'its partitions are not those of its id, so it was changed since');
  return { id, reasons, input };
}

async function content(file: string): Promise<string> {
  if (file === '-') return text(process.stdin);
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
    throw new Failure(
      'InvalidInput',
      `There is no file ${file}: expected a plan kept with \`repave plan … --json > ${file}\`.`,
    );
  }
}

function parsed(json: string, name: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch {
    throw noPlan(name, 'it is no JSON document, or not a whole one');
  }
  if (typeof value !== 'object' || value === null || !('partitions' in value))
    throw noPlan(name, 'it has no partitions');
  return value;
}

function noPlan(name: string, because: string): Failure {
  return new Failure(
    'InvalidInput',
    `${name} is no kept plan (${because}): expected what \`repave plan … --json\` wrote.`,
  );
}
