// Every row of a day, in their order.

import { DATABASE_ROWS } from './database-rows.ts'
import type { Row } from './row.ts'
import { SETTINGS_ROWS } from './settings-rows.ts'
import { STORE_ROWS } from './store-rows.ts'
import { UPKEEP_ROWS } from './upkeep-rows.ts'

export const ROWS: readonly Row[] = [...DATABASE_ROWS, ...STORE_ROWS, ...SETTINGS_ROWS, ...UPKEEP_ROWS]
