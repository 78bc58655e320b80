// The hub's tables, defined once for both dialects. Columns have the names of the wire protocol.

import { choreTables } from './chore-tables.ts'
import type { Columns } from './columns.ts'
import { hookTables } from './hook-tables.ts'
import { lineageTables } from './lineage-tables.ts'
import { runTables } from './run-tables.ts'
import { tellTables } from './tell-tables.ts'
import { tenancyTables } from './tenancy-tables.ts'
import { triggerTables } from './trigger-tables.ts'
import { webhookTables } from './webhook-tables.ts'

export function tables(columns: Columns) {
  const tenancy = tenancyTables(columns)
  const triggering = triggerTables(columns, tenancy)
  return {
    ...tenancy,
    ...runTables(columns, tenancy),
    ...webhookTables(columns, tenancy),
    ...triggering,
    ...hookTables(columns, triggering),
    ...tellTables(columns, tenancy),
    ...lineageTables(columns),
    ...choreTables(columns),
  }
}

export type Tables = ReturnType<typeof tables>
