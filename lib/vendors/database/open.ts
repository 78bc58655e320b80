// Opens a database, whichever it is.

import type { AgentContext } from '../../agent/agent-context.ts'
import type { Database } from './database.ts'
import type { Access } from './database-access.ts'
import { openServer } from './server.ts'
import { openSqlite } from './sqlite.ts'

/** The most rows that one query may give. Bun's client holds a complete result of MySQL in memory. */
export const ROWS_MOST = { postgres: 10_000_000, mysql: 100_000, sqlite: 10_000_000 }

/** Connects to the database. Throws an AgentError with `sent: 'no'` when that fails. */
export async function openDatabase(context: AgentContext<unknown>, access: Access): Promise<Database> {
  return access.provider === 'sqlite' ? openSqlite(context, access) : openServer(context, access)
}
