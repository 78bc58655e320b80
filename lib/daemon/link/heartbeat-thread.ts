// The heartbeat runs in its own thread, so that a busy main thread loses no lease. It speaks for the main thread only
// while that works: the main thread counts a beat in shared memory, and after 60 s without one the daemon reports
// `stuck` and names no jobs, so that their leases expire.

import { CadreError, messageOf } from '../../error.ts'
import { livedMs } from '../../lived-time.ts'
import { Heartbeat, type Start } from '../../wire/calls/daemon-link.ts'
import { type Bulletin, isMoved, PROTOCOL, type Remembered } from '../../wire/protocol.ts'
import type { Standing } from '../../wire/standing.ts'
import { HubClient, troubleCode } from './hub-client.ts'

declare const self: Worker

export interface HeartbeatSetup {
  url: string
  token: string
  daemonId: string
  start: Start
  /** One Int32: the count of the beats of the main thread. */
  beat: SharedArrayBuffer
}

export type HeartbeatOrder =
  | { setup: HeartbeatSetup }
  | { running: string[]; teamsVersion: string | null; memory: Remembered | null; standing: Standing | null }

/** `ahead`: by how many milliseconds the hub's clock was ahead of this machine's when the reply came. */
/** `trouble` is the code with which the link shows the failure. */
export type HeartbeatReport =
  | { reply: Bulletin; ahead: number }
  | { code: string; message: string; moved: boolean; trouble: string }

const STUCK_MS = 60_000
const FIRST_INTERVAL_MS = 15_000
/** The hub chooses the interval, between these limits. */
const SHORTEST_INTERVAL_MS = 100
const LONGEST_INTERVAL_MS = 60_000

if (!Bun.isMainThread) {
  let client: HubClient
  let setup: HeartbeatSetup
  let running: string[] = []
  let teamsVersion: string | null = null
  let memory: Remembered | null = null
  let standing: Standing | null = null
  let interval = FIRST_INTERVAL_MS
  let timer: Timer
  /** The last beat that was new, and when it was seen. */
  let seen = { count: -1, lived: 0 }

  const beat = async () => {
    clearTimeout(timer)
    const count = Atomics.load(new Int32Array(setup.beat), 0)
    const lived = livedMs()
    if (count !== seen.count) seen = { count, lived }
    const stuck = lived - seen.lived > STUCK_MS
    try {
      const reply = await client.call(Heartbeat, {
        daemon_id: setup.daemonId,
        ...setup.start,
        protocol: PROTOCOL,
        clock: Date.now(),
        running: stuck ? [] : running,
        ...(stuck && { stuck: true }),
        ...(teamsVersion && { teams_version: teamsVersion }),
        ...(memory && { memory }),
        ...(standing && { standing }),
      })
      memory = reply.memory ?? memory
      interval = Math.min(Math.max(reply.next_ms, SHORTEST_INTERVAL_MS), LONGEST_INTERVAL_MS)
      const ahead = reply.server_time - Date.now()
      self.postMessage({ reply, ahead } satisfies HeartbeatReport)
    } catch (error) {
      const code = error instanceof CadreError ? error.code : 'unavailable'
      const failure = { code, message: messageOf(error), moved: isMoved(error), trouble: troubleCode(error) }
      self.postMessage(failure satisfies HeartbeatReport)
    }
    // Jitter keeps a thousand daemons that started together from calling together.
    timer = setTimeout(beat, interval * (0.85 + Math.random() * 0.3))
  }

  self.onmessage = async ({ data }: MessageEvent<HeartbeatOrder>) => {
    if ('running' in data) {
      running = data.running
      teamsVersion = data.teamsVersion
      memory = data.memory
      standing = data.standing
      return
    }
    setup = data.setup
    client = new HubClient(setup.url, setup.token)
    await beat()
  }
}
