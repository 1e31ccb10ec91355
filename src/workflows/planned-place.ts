import type { FillPolicy, PlannedPlace, Provenance } from '../activities/messages.js';

/** What a request that ends a run says of where it works and whose it is. A plan of an older version has only its ledger. */
export function plannedPlace({
  ledger,
  database,
  source,
  backfill,
  startedBy,
}: FillPolicy): PlannedPlace & Provenance & Pick<FillPolicy, 'ledger'> {
  return { ledger, database, source, backfill, startedBy };
}
