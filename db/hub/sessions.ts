// Whether a database keeps a session for each connection. A pooler in transaction mode does not: there a connection has one
// of the server's only for the time of a transaction, so what it sets and what it listens to belongs to others soon. Engines
// that only speak PostgreSQL's protocol may lack LISTEN, or settings that the hub makes.

import { messageOf } from '../../lib/error.ts'
import { PLANNING } from './postgres-pool.ts'
import { sqlState } from './store.ts'

/** How long a hub waits for a notification that it has sent to itself. */
const PATIENCE_MS = 2_000
/** What is said of a parameter in the address of the database, such as `jit` or `options`. */
const REFUSED = /startup parameter(?: in options)?: (\w+)/
/** Classes of SQLSTATEs: the server lacks what was asked for, or does not allow it. */
const LACKING = /^(0A|22|42|55|XX)/

export interface Found {
  /** The address without the parameters that were refused. */
  url: string
  /** Why the hub has to do without sessions, or null. */
  lack: string | null
}

/** Finds out whether connections to `url` have sessions. Throws when there is no connection. */
export async function findSessions(url: string): Promise<Found> {
  const topic = `cadre_probe_${crypto.randomUUID().replaceAll('-', '')}`
  // Each has a connection of its own: one that sends by that which listens would hear itself even by a pooler.
  const [listening, sending] = [0, 1].map(() => new Bun.SQL(url, { max: 1, prepare: false })) as [Bun.SQL, Bun.SQL]
  const heard = Promise.withResolvers<boolean>()
  let timer: Timer | undefined
  try {
    await sending.unsafe('SELECT 1')
    await listening.listen(topic, () => heard.resolve(true))
    await sending.unsafe('SELECT pg_notify($1, $2)', [topic, ''])
    // Over a distance, connections alone may take longer than this.
    timer = setTimeout(() => heard.resolve(false), PATIENCE_MS)
    if (!(await heard.promise)) {
      return { url, lack: `a notification of the hub to itself did not come back within ${PATIENCE_MS / 1_000} s` }
    }
    await sending.unsafe(PLANNING).simple()
    return { url, lack: null }
  } catch (error) {
    const why = messageOf(error).split('\n', 1)[0]!
    const without = withoutParameter(url, REFUSED.exec(why)?.[1])
    if (without !== null) return { url: (await findSessions(without)).url, lack: why }
    if (LACKING.test(sqlState(error))) return { url, lack: why }
    throw error
  } finally {
    clearTimeout(timer)
    await Promise.allSettled([listening, sending].map(sql => sql.close({ timeout: 0 })))
  }
}

/** The address without one of its parameters; null when it has none of that name. */
function withoutParameter(url: string, name: string | undefined): string | null {
  const { searchParams } = new URL(url)
  if (name === undefined) return null
  const own = searchParams.has(name) ? name : 'options'
  if (!searchParams.has(own)) return null
  const without = new URL(url)
  without.searchParams.delete(own)
  return without.href
}
