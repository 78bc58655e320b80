// The hub's tables, defined once for both dialects. Columns have the names of the wire protocol.

import type { Columns } from './columns.ts'
import { memoryTables } from './memory.ts'
import { tenancyTables } from './tenancy.ts'
import { webhookTables } from './webhooks.ts'
import { workTables } from './work.ts'

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
