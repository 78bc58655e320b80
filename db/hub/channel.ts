// How hubs on one PostgreSQL wake each other: LISTEN and NOTIFY.

import { startPause } from '../../lib/wait.ts'

const NAME = 'cadre_hub'
/** Later notifications do not wait longer than this for earlier ones, whose connection may be dead. */
const LATE_MS = 5_000

/** Reaches every process that uses the database, this one included. */
export interface Channel {
  /** Words that are the same and are sent at the same time are received once. */
  send(topic: string): void
  /** `missed` is called whenever topics may have been lost, because the connection was interrupted and is restored. */
  receive(listener: (topic: string) => void, missed: () => void): void
}

export async function openChannel(client: Bun.SQL): Promise<Channel & { close(): Promise<void> }> {
  const listeners = new Set<Parameters<Channel['receive']>>()
  const subscription = await client.listen(
    NAME,
    topic => {
      for (const [listener] of listeners) listener(topic)
    },
    // Called at the start, when there is no listener yet, and after each reconnection.
    () => {
      for (const [, missed] of listeners) missed()
    },
  )
  const waiting = new Set<string>()
  let sending = false
  async function sendAll(): Promise<void> {
    while (waiting.size > 0) {
      const topics = JSON.stringify([...waiting])
      waiting.clear()
      const { over, end } = startPause(LATE_MS)
      // A lost notification only causes a short delay, because waiting processes check again by themselves.
      void client`SELECT pg_notify(${NAME}, topic) FROM json_array_elements_text(${topics}::text::json) AS topic`
        .catch(() => {})
        .finally(end)
      await over
    }
    sending = false
  }
  return {
    send(topic) {
      waiting.add(topic)
      if (sending) return
      sending = true
      setImmediate(() => void sendAll())
    },
    receive: (...those) => listeners.add(those),
    close: () => subscription.unlisten(),
  }
}
