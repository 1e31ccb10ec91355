import { newestFinished } from '../calendar/range.js';
import { windowOf } from '../calendar/window.js';
import { Failure } from '../failure.js';
import type { Pipeline, SqlPipeline } from '../pipeline/pipeline.js';
import type { Database } from '../warehouse/database.js';
import { describePipeline } from '../warehouse/describe.js';
import { quoted } from '../warehouse/identifier.js';
import { partMaking } from '../warehouse/may-create.js';
import { readRefusal } from '../warehouse/may-read.js';
import { targetHealth } from '../warehouse/target-health.js';
import { zoneDisagreement } from '../warehouse/zone-agreement.js';
import { type Finding, fine, unsure, wrong } from './finding.js';

/**
 * Looks at one pipeline as the roles that are logged in, its own target first, then where it reads: what a fill would fail on,
 * what the roles lack, and what makes the target grow. `source` is absent where that was not reached, and where there is none.
 */
export async function examinePipeline(
  database: Database,
  pipeline: Pipeline,
  source: Database | undefined,
): Promise<Finding[]> {
  const { problems, target } = await describePipeline(database, pipeline, source);
  const findings = problems.map(({ message }) => wrong(`pipeline ${pipeline.name}`, message));
  if (target === undefined) return findings;
  if (pipeline.create) findings.push(...(await examineParts(database, pipeline)));
  if (pipeline.kind === 'sql') findings.push(...(await examineReading(database, pipeline, source)));
  findings.push(...(await examineGrowth(database, pipeline)));
  if (findings.length === 0) findings.push(fine(`pipeline ${pipeline.name}, into ${target}`));
  return findings;
}

/** Whether a process and a server mean the same by each of the zones. */
export async function examineZones(database: Database, zones: ReadonlySet<string>): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const zone of zones) {
    try {
      const differing = await zoneDisagreement(database, zone);
      if (differing !== undefined) findings.push(wrong(`time zone ${zone}`, differing));
    } catch (error) {
      if (!(error instanceof Failure) || error.type === 'DatabaseUnavailable') throw error;
      findings.push(wrong(`time zone ${zone}`, error.message));
    }
  }
  if (findings.length === 0 && zones.size > 0)
    findings.push(fine(`time zones as the server knows them: ${[...zones].sort().join(', ')}`));
  return findings;
}

async function examineParts(database: Database, pipeline: Pipeline): Promise<Finding[]> {
  const making = await partMaking(database, pipeline);
  if (!making) return [];
  const role = await roleOf(database);
  const findings: Finding[] = [];
  const what = `pipeline ${pipeline.name} has \`create: true\``;
  if (!making.actsAsOwner)
    findings.push(
      wrong(`${what}, and ${role} is not the table's owner`, `GRANT ${quoted(making.owner)} TO ${quoted(role)};`),
    );
  if (!making.ownerMayCreate)
    findings.push(
      wrong(
        `${what}, and the table's owner may make none in its schema`,
        `GRANT CREATE ON SCHEMA ${quoted(making.schema)} TO ${quoted(making.owner)};`,
      ),
    );
  return findings;
}

async function examineReading(
  database: Database,
  pipeline: SqlPipeline,
  source: Database | undefined,
): Promise<Finding[]> {
  const from = pipeline.source === undefined ? database : source;
  if (!from) return [];
  const { partition } = pipeline;
  const window = windowOf(partition, newestFinished(partition, new Date().toISOString()));
  const refusal = await readRefusal(from, pipeline, window);
  if (!refusal) return [];
  const where = pipeline.source === undefined ? '' : ` in ${pipeline.source}`;
  return [
    wrong(
      `pipeline ${pipeline.name} reads what ${await roleOf(from)} may not${where}: ${refusal.message.replace(/ Print the grants.*$/s, '')}`,
      `As the owner of what it reads: GRANT SELECT ON … TO ${quoted(await roleOf(from))};`,
    ),
  ];
}

async function examineGrowth(database: Database, pipeline: Pipeline): Promise<Finding[]> {
  const health = await targetHealth(database, pipeline);
  if (health?.problem === undefined) return [];
  return [unsure(`pipeline ${pipeline.name}: ${health.problem}`, health.statements.join('\n'))];
}

async function roleOf(database: Database): Promise<string> {
  const [row] = await database.query<{ role: string }>('SELECT current_user AS role');
  return row?.role ?? '';
}
