import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { keysBetween } from '../calendar/range.js';
import { BackfillFailed, type RepaveClient } from '../client.js';
import { type BackfillInput, type BackfillResult, DEFAULTS, type PartitionState, type Progress } from '../contract.js';
import { loadPipeline } from '../pipeline/load.js';
import type { Pipeline } from '../pipeline/pipeline.js';
import { stateOf } from '../warehouse/partition-state.js';
import type { Database } from '../warehouse/database.js';
import { registeredPipelines } from '../warehouse/ledger.js';
import { partitionStates } from '../warehouse/partition-states.js';
import type { Finding } from '../warehouse/findings.js';
import { ALL_KEYS, verifyPipeline } from '../warehouse/verify-pipeline.js';
import { DEMO_BACKFILL } from './demo.js';
import { cancelLeftOpen, leftOpen } from './demo-left-open.js';
import { type DemoReport, readReport } from './demo-report.js';
import { type DemoServers, type DemoServersOptions, PACKAGE, withDemoServers } from './demo-servers.js';
import { delay } from './owned-process.js';
import type { WorkerPart } from './worker-process.js';

/** The dates that the demo breaks, each in its own way. */
export const BROKEN = { deleted: '1997-03-10', failed: '1997-08-14', older: '1998-02-03' } as const;

/** What a schedule's heal would ask for, of all dates of the example. */
const HEAL = {
  ...DEMO_BACKFILL,
  only: ['missing', 'failed', 'outdated'],
  tries: DEFAULTS.healTries,
  priority: DEFAULTS.healPriority,
} as const satisfies BackfillInput;

/** The state of every date of the example, in the order of time. */
export type DemoPicture = readonly { readonly key: string; readonly state: PartitionState }[];

/** What the demo of a heal tells, beside what its servers need. */
export interface DemoHealOptions extends DemoServersOptions {
  readonly onProgress: (progress: Progress) => void;
  /** Shown as it is reached: before anything is broken, once it is found, and healed. */
  readonly onPicture: (moment: 'before' | 'broken' | 'healed', picture: DemoPicture) => void;
}

/** What the demo of a heal has come to. */
export interface DemoHealOutcome {
  /** What verify found. */
  readonly findings: readonly Finding[];
  /** Of the heal. */
  readonly result: BackfillResult;
  readonly report: DemoReport;
}

/**
 * Breaks three dates of the demo's table on purpose (deletes one behind Repave's back, has one fail, fills one by an older
 * query), has verify find what nobody told of, and heals all of them; first fills the table where the demo has not yet.
 * Resolves to what came of it, or to the signal that cut it short. Throws what went wrong; nothing is left running then either.
 */
export async function runDemoHeal(
  options: DemoHealOptions,
): Promise<{ readonly value: DemoHealOutcome } | { readonly signal: NodeJS.Signals }> {
  return withDemoServers(options, async (servers) => {
    const versions = new Versions(servers);
    await settle(options, servers, versions);
    return servers.withClient((repave) => breakAndHeal(options, servers.database, versions, repave));
  });
}

/** Fills whatever an earlier demo has not, or left half-way, so that all that is broken is what is broken here. */
async function settle(options: DemoHealOptions, servers: DemoServers, versions: Versions): Promise<void> {
  const { database, withClient } = servers;
  const pipeline = await versions.write('current');
  const open = await withClient((repave) => leftOpen(repave, database, pipeline.name));
  const whole = (await picture(database, pipeline)).every(({ state }) => state === 'filled');
  if (open.length === 0 && whole && (await readReport(database)).differing === 0) return;
  options.say('Not every date is filled yet: that comes first.');
  await versions.serve('current');
  await withClient(async (repave) => {
    await cancelLeftOpen(repave, database, DEMO_BACKFILL, options.say);
    const backfill = await repave.backfill(DEMO_BACKFILL);
    for await (const progress of backfill.follow()) options.onProgress(progress);
    await backfill.result();
  });
}

async function breakAndHeal(
  { say, onPicture, onProgress }: DemoHealOptions,
  database: Database,
  versions: Versions,
  repave: RepaveClient,
): Promise<DemoHealOutcome> {
  const one = (key: string): BackfillInput => ({ pipeline: DEMO_BACKFILL.pipeline, keys: [key] });
  onPicture('before', await picture(database, await versions.write('current')));

  say(`${BROKEN.older}: filled by an older query, which counts a customer's orders of a day as one.`);
  await versions.serve('older');
  await (await repave.backfill(one(BROKEN.older))).result();
  const pipeline = await versions.serve('current');

  say(`${BROKEN.failed}: its purchases go astray for a while, so that its fill fails.`);
  await database.query('UPDATE sales SET sold_on = sold_on - 36525 WHERE sold_on = $1', [BROKEN.failed]);
  const failure = await failureOf((await repave.backfill(one(BROKEN.failed))).result());
  say(`  ${failure.result?.failures[0]?.message ?? failure.message}`);
  await database.query('UPDATE sales SET sold_on = sold_on + 36525 WHERE sold_on = $1::date - 36525', [BROKEN.failed]);

  say(`${BROKEN.deleted}: deleted behind Repave's back.`);
  await database.query('DELETE FROM sales_summary WHERE sale_date = $1', [BROKEN.deleted]);

  const findings: Finding[] = [];
  const { signal } = new AbortController();
  for await (const stretch of verifyPipeline(database, { pipeline, spans: [ALL_KEYS], dryRun: false, signal })) {
    findings.push(...stretch.findings);
  }
  for (const { key, ledgerRows, tableRows, state } of findings) {
    say(`verify: ${key} is ${state}: the ledger says ${ledgerRows}, the table has ${tableRows}.`);
  }
  onPicture('broken', await picture(database, pipeline));

  const heal = await repave.backfill(HEAL);
  for await (const progress of heal.follow()) onProgress(progress);
  const result = await heal.result();
  onPicture('healed', await picture(database, pipeline));
  return { findings, result, report: await readReport(database) };
}

/** How a backfill has failed. Throws where it has not. */
async function failureOf(result: Promise<BackfillResult>): Promise<BackfillFailed> {
  try {
    await result;
  } catch (error) {
    if (error instanceof BackfillFailed) return error;
    throw error;
  }
  throw new Error('The fill of a date without purchases has not failed');
}

async function picture(database: Database, { name, partition, fingerprint }: Pipeline): Promise<DemoPicture> {
  const rows = await partitionStates(database, name, [DEMO_BACKFILL]);
  const { from, to } = DEMO_BACKFILL;
  return [...keysBetween(partition, from, to)].map((key) => ({ key, state: stateOf(rows.get(key), fingerprint) }));
}

/** What the example's query was before it was as it is. */
const OLDER: readonly [now: string, then: string] = ['count(*)', 'count(DISTINCT customer_id)'];

/** A project of the demo's own, whose one pipeline is the example's, as it is or as it was, and the worker that serves it. */
class Versions {
  readonly #servers: DemoServers;
  readonly #project: string;
  #worker: WorkerPart | undefined;

  constructor(servers: DemoServers) {
    this.#servers = servers;
    this.#project = join(servers.stateDir, 'heal');
  }

  /** Has the file say this version, which a worker that runs does not know yet. */
  async write(version: 'current' | 'older'): Promise<Pipeline> {
    const file = `${DEMO_BACKFILL.pipeline}.sql`;
    const text = readFileSync(join(PACKAGE, 'pipelines', file), 'utf8');
    const folder = join(this.#project, 'pipelines');
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, file), version === 'current' ? text : text.replace(...OLDER));
    return loadPipeline(folder, DEMO_BACKFILL.pipeline);
  }

  /** Has the worker serve this version. */
  async serve(version: 'current' | 'older'): Promise<Pipeline> {
    const pipeline = await this.write(version);
    if (this.#worker) await this.#worker.renew();
    else this.#worker = await this.#servers.startWorker(this.#project);
    await this.#registered(pipeline);
    return pipeline;
  }

  /** Resolves once the worker has said in the ledger what it serves. That it ends by itself breaks the whole. */
  async #registered({ name, fingerprint }: Pipeline): Promise<void> {
    for (;;) {
      const registered = await registeredPipelines(this.#servers.database);
      if (registered.some((one) => one.name === name && one.fingerprint === fingerprint)) return;
      await delay(100);
    }
  }
}
