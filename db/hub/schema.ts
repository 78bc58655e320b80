// The hub's tables, defined once for both dialects. Columns have the names of the wire protocol.

import type { Columns } from './columns.ts'
import { tenancyTables } from './tenancy.ts'
import { workTables } from './work.ts'

export function tables(columns: Columns) {
  const tenancy = tenancyTables(columns)
  return { ...tenancy, ...workTables(columns, tenancy) }
}

export type Tables = ReturnType<typeof tables>
