// How hubs wake each other on a database that passes no notifications on: each writes its words as rows, and looks for those
// of the others twice a second.

import type { Channel } from './channel.ts'
import { batched } from './channel.ts'
import { lookAgain } from './look-again.ts'
import type { Statements } from './postgres-pool.ts'

const LOOK_MS = 500
/** A row is seen when its transaction is committed, which is later than the time in it. */
const LATE_MS = 10_000
const KEEP_MS = 60_000

/** By the clock of the database, in epoch milliseconds. */
const NOW = 'floor(extract(epoch from clock_timestamp()) * 1000)::bigint'
const WRITE = `INSERT INTO news (id, at, topics) VALUES ($1, ${NOW}, $2) ON CONFLICT DO NOTHING`
const READ = `SELECT id, topics FROM news WHERE at > ${NOW} - ${LATE_MS} ORDER BY at`
const DELETE = `DELETE FROM news WHERE at < ${NOW} - ${KEEP_MS}`

export function openNews(statements: Statements): Channel & { close(): Promise<void> } {
  const listeners = new Set<Parameters<Channel['receive']>>()
  /** The rows that this hub has written or read, and when. */
  const known = new Map<string, number>()
  let lookedAt = performance.now()
  let cleanedAt = lookedAt

  const send = batched(async topics => {
    const id = crypto.randomUUID()
    known.set(id, performance.now())
    await statements.unsafe(WRITE, [id, JSON.stringify(topics)])
  })

  async function look(): Promise<void> {
    const now = performance.now()
    const rows: { id: string; topics: string }[] = await statements.unsafe(READ)
    // Rows that others have written meanwhile may be too old to be read.
    const hasMissed = now - lookedAt > LATE_MS / 2
    lookedAt = now
    const topics = new Set<string>()
    for (const row of rows) {
      if (!known.has(row.id)) for (const topic of JSON.parse(row.topics)) topics.add(topic)
      known.set(row.id, now)
    }
    for (const [id, at] of known) if (now - at > 2 * LATE_MS) known.delete(id)
    for (const [listener, missed] of listeners) {
      for (const topic of topics) listener(topic)
      if (hasMissed) missed()
    }
    if (now - cleanedAt < KEEP_MS) return
    cleanedAt = now
    await statements.unsafe(DELETE)
  }

  // Whoever waits for news looks by itself after a few seconds, and the calls say what is wrong.
  const looks = lookAgain(look, LOOK_MS)
  return {
    send,
    receive: (...those) => void listeners.add(those),
    close: () => looks.stop(),
  }
}
