import { Failure } from '../failure.js';
import type { FillRequest } from './fill-request.js';
import { insertSupply } from './insert.js';
import { relaySupply } from './relay-supply.js';
import type { Session } from './session.js';
import { type SpooledSource, spooledSupply } from './spooled-supply.js';
import { streamedSupply } from './streamed-supply.js';
import type { Target } from './target.js';

/** Where rows are written: the target, or a table with its columns. */
export interface Destination {
  /** Quoted, with its schema where that is named. */
  readonly table: string;
  /** Whether a trigger may drop rows there. */
  readonly mayDropRows: boolean;
}

/** What a fill's source has given. */
export interface Supplied {
  /** Rows, whatever became of them. */
  readonly sent: number;
  /**
   * What the queries of `sum` checks gave, in the snapshot that the rows were read in: as text, or NULL, by the check's place
   * in the pipeline's list.
   */
  readonly sums: ReadonlyMap<number, string | null>;
  /** What the pipeline's `changed` says: of a query, in that snapshot; of a function, before a row was read. Absent: it has none. */
  readonly sourceVersion?: string;
}

/** One fill's rows on their way into its transaction. What can be refused before a row moves was refused when it was made. */
export interface RowSupply {
  /** The columns written, in order; of a source that gave no row perhaps the partition column alone. */
  readonly columns: readonly string[];
  /** Writes the rows. Once. */
  write(session: Session, destination: Destination): Promise<Supplied>;
  /** Gives back what is held. Called in every case, once `write` has settled. */
  close(): Promise<void>;
}

/** Makes ready what the pipeline's rows come from. Throws what the servers judge: `SchemaMismatch`, `InvalidPipeline` and the like. */
export async function openSupply(
  session: Session,
  request: FillRequest,
  target: Target,
  spooled: SpooledSource | undefined,
): Promise<RowSupply> {
  const { pipeline } = request;
  if (pipeline.kind === 'sql') {
    return pipeline.source === undefined
      ? insertSupply(session, request, pipeline, target)
      : relaySupply(session, request, pipeline, target);
  }
  if (pipeline.stage === false) return streamedSupply(session, request, pipeline, target);
  if (!spooled) throw new Failure('Unexpected', `${pipeline.name} has no rows to copy.`);
  return spooledSupply(request, target, spooled);
}
