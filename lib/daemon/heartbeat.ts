// The heartbeat, in a thread of its own: a busy main thread loses no lease. It only speaks for the main thread while
// that moves: its beat is a counter in shared memory, and past 60 s without a step the daemon reports `stuck` and names
// no jobs, so that their leases lapse.

import type { HubClient } from './hub-client.ts'

declare const self: Worker

export interface HeartbeatSetup {
  url: string
  token: string
  daemonId: string
  /** One Int32: epoch seconds of the main thread's last beat. */
  beat: SharedArrayBuffer
}

export type HeartbeatOrder = { setup: HeartbeatSetup } | { running: string[]; teamsVersion: string | null } | 'now'

export type HeartbeatReport = { reply: Record<string, unknown> } | { code: string; message: string }

const STUCK_SECONDS = 60
const FIRST_INTERVAL_MS = 15_000

if (!Bun.isMainThread) {
  let client: HubClient
  let setup: HeartbeatSetup
  let running: string[] = []
  let teamsVersion: string | null = null
  let interval = FIRST_INTERVAL_MS
  let timer: Timer

  const beat = async () => {
    clearTimeout(timer)
    const age = Date.now() / 1_000 - Atomics.load(new Int32Array(setup.beat), 0)
    const stuck = age > STUCK_SECONDS
    try {
      const reply = await client.call('/v1/daemons/heartbeat', {
        daemon_id: setup.daemonId,
        protocol: 1,
        clock: Date.now(),
        running: stuck ? [] : running,
        ...(stuck && { stuck: true }),
        ...(teamsVersion && { teams_version: teamsVersion }),
      })
      if (typeof reply.next_ms === 'number') interval = Math.min(Math.max(reply.next_ms, 100), 60_000)
      self.postMessage({ reply } satisfies HeartbeatReport)
    } catch (error) {
      const { code = 'unavailable', message } = error as { code?: string; message: string }
      self.postMessage({ code, message } satisfies HeartbeatReport)
    }
    // Jitter keeps a thousand daemons that started together from calling together.
    timer = setTimeout(beat, interval * (0.85 + Math.random() * 0.3))
  }

  self.onmessage = async ({ data }: MessageEvent<HeartbeatOrder>) => {
    if (data === 'now') return void beat()
    if ('running' in data) {
      running = data.running
      teamsVersion = data.teamsVersion
      return
    }
    setup = data.setup
    const { HubClient } = await import('./hub-client.ts')
    client = new HubClient(setup.url, setup.token)
    await beat()
  }
}
