// The statements that a piece of work makes. Drizzle tells each of them to the log of its session.

import type { Db } from '../../db/hub/store.ts'

interface Logged {
  session: { logger: { logQuery?: (text: string) => void } }
}

/** The texts of the statements that `work` makes on a connection or transaction, in their order. */
export async function statementsOf(db: Db, work: () => Promise<unknown>): Promise<string[]> {
  const texts: string[] = []
  const { logger } = (db as unknown as Logged).session
  logger.logQuery = text => texts.push(text)
  await work()
  delete logger.logQuery
  return texts
}
