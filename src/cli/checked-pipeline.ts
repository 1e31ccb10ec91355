import type { FailureType } from '../contract.js';
import type { PipelineSchedule } from '../pipeline/pipeline.js';
import type { ComparedColumn } from '../warehouse/compare-columns.js';
import type { DeletePlan } from '../warehouse/delete-index.js';
import type { FreshColumn } from '../warehouse/fresh-values.js';
import type { SampleFill } from '../warehouse/sample-fill.js';

/** What `repave check` says of one pipeline; `--json` writes just this. */
export interface CheckedPipeline {
  readonly name: string;
  /** Its path, from the project's folder: `pipelines/sales_summary.sql`. */
  readonly file: string;
  readonly kind?: 'sql' | 'typescript';
  /** The table, as the database names it where it could be asked, else as the file does. */
  readonly target?: string;
  readonly partition?: { readonly column: string; readonly by: string; readonly zone: string };
  /** What its file says; whether Temporal has it, `repave deploy` says. */
  readonly schedule?: PipelineSchedule;
  /** What a fill would fail on, by line. */
  readonly problems: readonly { readonly line?: number; readonly type: FailureType; readonly message: string }[];
  /** What a fill would do and its author may not expect, by line. */
  readonly warnings: readonly { readonly line?: number; readonly message: string }[];
  /** What is good to know and needs nobody's hand, by line. */
  readonly notes: readonly { readonly line?: number; readonly message: string }[];
  /** Why a database was not asked. */
  readonly unasked?: string;
  /** Beside `unasked`: no database was asked, only what the file says was checked; else it is the source that was not. */
  readonly fileOnly?: boolean;
  /** Beside `unasked`: the variable is set, and what it names did not answer. */
  readonly unreached?: boolean;
  readonly columns: readonly ComparedColumn[];
  /** Columns that the rows leave to the table. */
  readonly left: readonly FreshColumn[];
  readonly deletes?: DeletePlan;
  readonly sample?: SampleFill;
}
