// The hub's tables, defined once for both dialects. Columns have the names of the wire protocol.

import type { Columns } from './columns.ts'
import { lineageTables } from './lineage-tables.ts'
import { runTables } from './run-tables.ts'
import { tellTables } from './tell-tables.ts'
import { tenancyTables } from './tenancy-tables.ts'
import { triggerTables } from './trigger-tables.ts'
import { webhookTables } from './webhook-tables.ts'

export function tables(columns: Columns) {
  const tenancy = tenancyTables(columns)
  return {
    ...tenancy,
    ...runTables(columns, tenancy),
    ...webhookTables(columns, tenancy),
    ...triggerTables(columns, tenancy),
    ...tellTables(columns, tenancy),
    ...lineageTables(columns),
  }
}

export type Tables = ReturnType<typeof tables>
