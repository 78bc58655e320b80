// How hubs on one PostgreSQL wake each other: LISTEN and NOTIFY, or rows where the database passes none on (news.ts). The connection that listens says nothing by itself, so a
// hub sends itself a notification from time to time. When it does not come back, the hub listens on a new connection.

import { startPause } from '../../lib/wait.ts'
import type { PostgresPool } from './postgres-pool.ts'

const NAME = 'cadre_hub'
/** Later notifications do not wait longer than this for earlier ones, whose connection may be dead. */
const LATE_MS = 5_000
const SEND = `SELECT pg_notify($1, topic) FROM json_array_elements_text($2::text::json) AS topic`
/** How often a hub sends itself a notification, and how long that may take. */
const PING_MS = 5_000
const PING = 'ping '

/** Reaches every process that uses the database, this one included. */
export interface Channel {
  /** Words that are the same and are sent at the same time are received once. */
  send(topic: string): void
  /** `missed` is called whenever topics may have been lost, because the connection was interrupted and is restored. */
  receive(listener: (topic: string) => void, missed: () => void): void
}

export async function openChannel(url: string, pool: PostgresPool): Promise<Channel & { close(): Promise<void> }> {
  const listeners = new Set<Parameters<Channel['receive']>>()
  const ping = `${PING}${crypto.randomUUID()} `
  /** The numbers of the last notification that this hub has sent to itself, and of the last that came back. */
  let sent = 0
  let back = 0
  let client = new Bun.SQL(url, { max: 1 })
  const listen = async () => {
    await client.listen(
      NAME,
      topic => {
        if (topic.startsWith(ping)) back = Number(topic.slice(ping.length))
        if (topic.startsWith(PING)) return
        for (const [listener] of listeners) listener(topic)
      },
      // Called at the start, when there is no listener yet, and after each reconnection.
      () => {
        for (const [, missed] of listeners) missed()
      },
    )
  }
  await listen()

  const channel = {
    send: batched(async topics => {
      await pool.reads.unsafe(SEND, [NAME, JSON.stringify(topics)])
      for (const topic of topics) if (topic.startsWith(ping)) sent = Number(topic.slice(ping.length))
    }),
    receive: (...those: Parameters<Channel['receive']>) => void listeners.add(those),
  }

  let pings = 0
  let renewing: Promise<void> | null = null
  async function renew(): Promise<void> {
    void client.close({ timeout: 0 }).catch(() => {})
    client = new Bun.SQL(url, { max: 1 })
    const deadline = setTimeout(() => void client.close({ timeout: 0 }).catch(() => {}), PING_MS)
    await listen().catch(() => {})
    clearTimeout(deadline)
  }
  const timer = setInterval(() => {
    if (renewing) return
    // One that could not be sent says nothing about the connection that listens.
    if (back < sent) {
      back = sent
      renewing = renew().finally(() => {
        renewing = null
      })
    }
    channel.send(`${ping}${++pings}`)
  }, PING_MS)
  timer.unref()
  return {
    ...channel,
    async close() {
      clearInterval(timer)
      await renewing
      await client.close({ timeout: 0 }).catch(() => {})
    },
  }
}

/**
 * Sends the words of one turn of the event loop together, and those that come meanwhile after them. A lost word only causes
 * a short delay, because waiting processes check again by themselves. One that is sent twice wakes them twice.
 */
export function batched(send: (topics: string[]) => Promise<void>): Channel['send'] {
  const waiting = new Set<string>()
  let sending = false
  async function sendAll(): Promise<void> {
    while (waiting.size > 0) {
      const topics = [...waiting]
      waiting.clear()
      const { over, end } = startPause(LATE_MS)
      void send(topics)
        .catch(() => {})
        .finally(end)
      await over
    }
    sending = false
  }
  return topic => {
    waiting.add(topic)
    if (sending) return
    sending = true
    setImmediate(() => void sendAll())
  }
}
