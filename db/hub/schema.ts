// The hub's tables, defined once for both dialects. Columns have the names of the wire protocol.

import { choreTables } from './chore-tables.ts'
import type { Columns } from './columns.ts'
import { daemonTables } from './daemon-tables.ts'
import { hookTables } from './hook-tables.ts'
import { lineageTables } from './lineage-tables.ts'
import { packageTables } from './package-tables.ts'
import { queueTables } from './queue-tables.ts'
import { runTables } from './run-tables.ts'
import { tellTables } from './tell-tables.ts'
import { tenancyTables } from './tenancy-tables.ts'
import { triggerTables } from './trigger-tables.ts'
import { webhookTables } from './webhook-tables.ts'

export function tables(columns: Columns) {
  const tenancy = tenancyTables(columns)
  const running = runTables(columns, tenancy)
  const triggering = triggerTables(columns, tenancy)
  return {
    ...tenancy,
    ...daemonTables(columns, tenancy),
    ...packageTables(columns, tenancy),
    ...running,
    ...queueTables(columns, tenancy, running),
    ...webhookTables(columns, tenancy),
    ...triggering,
    ...hookTables(columns, triggering),
    ...tellTables(columns, tenancy),
    ...lineageTables(columns),
    ...choreTables(columns),
  }
}

export type Tables = ReturnType<typeof tables>
