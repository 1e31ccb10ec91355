import type { Finding, PassedOver } from '../warehouse/findings.js';
import type { Verification } from '../warehouse/verify.js';
import { EXIT, type ExitCode, type Told } from './exit.js';
import { counted, number, span } from './format.js';
import type { Output } from './output.js';
import { table } from './table.js';

/** Findings listed, in JSON too; the others are counted. */
const LISTED = 1_000;

/** What the comparison of one pipeline has come to so far. */
export interface VerifiedPipeline {
  readonly pipeline: string;
  compared: number;
  /** How many of them by a checksum too. */
  checksums: number;
  /** Checksums that could not be taken again. */
  unreadable: number;
  /** Partitions that were outdated already, and so not compared. */
  readonly outdated: number;
  /** Partitions in which rows were found missing or changed earlier, and which have not been filled since: not compared either. */
  readonly foundBefore: number;
  /** The first and the last of these. */
  readonly firstBefore?: string;
  readonly lastBefore?: string;
  differing: number;
  /** The first and the last key that differs. */
  first?: string;
  last?: string;
}

/** What a verification has come to, pipeline by pipeline. Holds no more findings than are listed. */
export class VerifyReport {
  readonly #pipelines: VerifiedPipeline[] = [];
  readonly #findings: (Finding & { readonly pipeline: string })[] = [];
  readonly #failures: { readonly pipeline: string; readonly told: Told }[] = [];
  readonly #notes: string[] = [];

  constructor(readonly dryRun: boolean) {}

  note(text: string): void {
    this.#notes.push(text);
  }

  /** A pipeline that could not be compared, or not to its end, and why. */
  fail(pipeline: string, told: Told): void {
    this.#failures.push({ pipeline, told });
  }

  begin(pipeline: string, { outdated, found, firstFound, lastFound }: PassedOver): VerifiedPipeline {
    const entry = {
      ...{ pipeline, compared: 0, checksums: 0, unreadable: 0, outdated, foundBefore: found, differing: 0 },
      ...{ firstBefore: firstFound ?? undefined, lastBefore: lastFound ?? undefined },
    };
    this.#pipelines.push(entry);
    return entry;
  }

  add(entry: VerifiedPipeline, { compared, checksums, unreadable, findings }: Verification): void {
    entry.compared += compared;
    entry.checksums += checksums;
    entry.unreadable += unreadable;
    entry.differing += findings.length;
    entry.first ??= findings[0]?.key;
    entry.last = findings.at(-1)?.key ?? entry.last;
    const room = LISTED - this.#findings.length;
    this.#findings.push(...findings.slice(0, room).map((finding) => ({ pipeline: entry.pipeline, ...finding })));
  }

  /**
   * Says all of it, whatever came after it. The exit code is 1 where something differs or still does, and the failure's where a
   * pipeline could not be compared. `error`: why there is no more of it, for programs.
   */
  tell(output: Output, error?: Pick<Told, 'type' | 'message'>): ExitCode {
    const found = this.#pipelines.reduce((sum, { differing }) => sum + differing, 0);
    const before = this.#pipelines.reduce((sum, { foundBefore }) => sum + foundBefore, 0);
    const [failed] = this.#failures;
    output.document({
      dryRun: this.dryRun,
      found,
      findings: this.#findings,
      pipelines: this.#pipelines,
      notes: this.#notes,
      failures: this.#failures.map(({ pipeline, told: { type, message } }) => ({ pipeline, type, message })),
      error: error && { type: error.type, message: error.message },
    });
    if (found > 0) output.result(`${this.#table(output)}\n`);
    for (const entry of this.#pipelines) output.result(summary(entry, output));
    for (const { pipeline, told } of this.#failures) output.say(`✗ ${pipeline}: ${told.message}`);
    for (const note of this.#notes) output.say(note);
    if (found > 0 && this.dryRun) output.say('Nothing was recorded.');
    const commands = this.#commands();
    if (commands.length > 0) output.say(`A heal that reaches them fills them again, or:\n${commands.join('\n')}`);
    if (failed) return failed.told.exitCode;
    return found + before > 0 ? EXIT.notWhole : EXIT.done;
  }

  #table(output: Output): string {
    const right = { align: 'right' } as const;
    const columns = [
      { heading: 'pipeline' },
      { heading: 'key' },
      { heading: 'ledger says', ...right },
      { heading: 'table has', ...right },
      { heading: this.dryRun ? 'would count as' : 'now counts as' },
    ];
    const rows = this.#findings.map(({ pipeline, key, ledgerRows, tableRows, state }) => [
      pipeline,
      key,
      counted(ledgerRows, 'row'),
      ledgerRows === tableRows ? 'other values' : counted(tableRows, 'row'),
      state,
    ]);
    const more = this.#pipelines.reduce((sum, { differing }) => sum + differing, 0) - this.#findings.length;
    return `${table(output, columns, rows)}${more > 0 ? `\nand ${number(more)} more` : ''}`;
  }

  /** What fills again what is recorded as differing, a command a pipeline. */
  #commands(): string[] {
    return this.#pipelines.flatMap(({ pipeline, first, last, firstBefore, lastBefore }) => {
      const keys = [firstBefore, lastBefore, ...(this.dryRun ? [] : [first, last])].filter((key) => key !== undefined);
      keys.sort();
      const all = span(keys[0], keys.at(-1));
      return keys.length > 0 ? [`  repave backfill ${pipeline} ${all} --only missing,failed,outdated`] : [];
    });
  }
}

function summary(entry: VerifiedPipeline, { colors }: Output): string {
  const { pipeline, compared, checksums, unreadable, outdated, foundBefore, firstBefore, lastBefore, differing } =
    entry;
  const mark = differing + foundBefore > 0 ? colors.red('✗') : colors.green('✓');
  const by = checksums === compared ? 'by checksum' : checksums === 0 ? 'by count' : `${number(checksums)} by checksum`;
  const what = compared === 0 ? 'nothing to compare' : `${counted(compared, 'partition')} compared, ${by}`;
  const result = differing > 0 ? `${number(differing)} ${differing === 1 ? 'differs' : 'differ'}` : 'none differs';
  return [
    `${mark} ${pipeline}: ${what}${compared > 0 ? `: ${result}` : ''}`,
    ...(foundBefore > 0
      ? [
          `  ${counted(foundBefore, 'partition')} found before (${span(firstBefore, lastBefore)}) and not filled since, and so not compared`,
        ]
      : []),
    ...(outdated > 0 ? [`  ${counted(outdated, 'partition')} outdated already, and not compared`] : []),
    ...(unreadable > 0
      ? [
          `  ${counted(unreadable, 'checksum')} of columns that the table has no more or as another type, and so compared by count alone`,
        ]
      : []),
  ].join('\n');
}
