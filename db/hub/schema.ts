// The hub's tables, defined once for both dialects. Columns have the names of the wire protocol.

import type { Columns } from './columns.ts'
import { memoryTables } from './memory-tables.ts'
import { tenancyTables } from './tenancy-tables.ts'
import { webhookTables } from './webhook-tables.ts'
import { workTables } from './work-tables.ts'

export function tables(columns: Columns) {
  const tenancy = tenancyTables(columns)
  return {
    ...tenancy,
    ...workTables(columns, tenancy),
    ...webhookTables(columns, tenancy),
    ...memoryTables(columns),
  }
}

export type Tables = ReturnType<typeof tables>
