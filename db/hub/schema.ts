// The hub's tables, once for both dialects. Rows are named as the wire names them.

import type { Columns } from './columns.ts'
import { tenancyTables } from './tenancy.ts'
import { workTables } from './work.ts'

export function tables(columns: Columns) {
  const tenancy = tenancyTables(columns)
  return { ...tenancy, ...workTables(columns, tenancy) }
}

export type Tables = ReturnType<typeof tables>
