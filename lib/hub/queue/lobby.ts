// Where polls wait for jobs. A realm has one room in each hub. When the bell rings, when a deadline has passed and every
// few seconds, the room asks once which jobs wait, and wakes one poll for each kind of need. A poll that was woken makes
// the room look again, so that the next one is woken as long as there is work. Ten thousand polls that wait cost as much
// as one, and a dispatch wakes one of them.

import { messageOf } from '../../error.ts'
import type { DaemonRow } from '../access/daemons.ts'
import type { Bell } from '../core/bell.ts'
import type { Hub } from '../core/hub.ts'
import { lacks, unready } from '../core/needs.ts'
import { hasOverdue, nextDeadline } from '../runs/overdue.ts'
import { loseRuns } from '../runs/runs.ts'
import { type Waiting, waitingJobs } from './claims.ts'

/** A room looks for jobs this often even when nothing wakes it. */
const LOOK_MS = 5_000
const SHORTEST_MS = 50

/** A poll that waits. */
export interface Seat extends Disposable {
  /**
   * Resolves when there may be a job for the daemon, or with false after `ms` or when `signal` fires. A wake-up between
   * two waits is remembered.
   */
  wait(daemon: DaemonRow, ms: number, signal: AbortSignal): Promise<boolean>
}

interface Guest {
  daemon: DaemonRow
  slots: number
  /** The round in which it was last woken. */
  round: number
  wake(): void
}

export class Lobby {
  readonly #hub: Hub
  readonly #rooms = new Map<string, Room>()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  /** Takes a seat. It is taken before the poll looks for jobs itself, so that none is missed in between. */
  sit(daemon: DaemonRow, slots: number): Seat {
    const id = daemon.realm_id
    const room = this.#rooms.get(id) ?? new Room(this.#hub, id, () => this.#rooms.delete(id))
    this.#rooms.set(id, room)
    return room.sit(daemon, slots)
  }
}

class Room {
  readonly #hub: Hub
  readonly #realmId: string
  readonly #closed: () => void
  readonly #stop = new AbortController()
  /** In the order in which they came. */
  readonly #guests = new Set<Guest>()
  #round = 0
  /** The needs for which a daemon was woken in this round although an agent is not ready on it. */
  readonly #reluctant = new Set<string>()
  #looking: Promise<void> | null = null
  #lookAgain = false

  constructor(hub: Hub, realmId: string, closed: () => void) {
    this.#hub = hub
    this.#realmId = realmId
    this.#closed = closed
    void this.#keep(hub.bell)
  }

  sit(daemon: DaemonRow, slots: number): Seat {
    let woken = false
    let end = () => {}
    const wake = () => {
      woken = true
      end()
    }
    const guest: Guest = { daemon, slots, round: -1, wake }
    this.#guests.add(guest)
    // What the daemon may take has changed.
    const unheard = this.#hub.bell.on(`daemon ${daemon.id}`, wake)
    return {
      wait: async (now, ms, signal) => {
        guest.daemon = now
        // The others have waited for longer than one that was just woken.
        this.#guests.delete(guest)
        this.#guests.add(guest)
        if (guest.round >= 0) this.look()
        if (!woken && !signal.aborted) {
          await new Promise<void>(resolve => {
            const timer = setTimeout(resolve, ms)
            end = () => {
              clearTimeout(timer)
              resolve()
            }
            signal.addEventListener('abort', end, { once: true })
          })
          signal.removeEventListener('abort', end)
        }
        const result = woken
        woken = false
        return result
      },
      [Symbol.dispose]: () => {
        unheard()
        this.#guests.delete(guest)
        if (this.#guests.size === 0) return this.#close()
        if (guest.round >= 0 || woken) this.look()
      },
    }
  }

  /** Looks for jobs and wakes polls for them, unless it does so already; then it looks once more afterwards. */
  look(): void {
    if (this.#looking) {
      this.#lookAgain = true
      return
    }
    this.#looking = this.#wakeForJobs()
      .catch(error => this.#hub.log.warn('waiting jobs could not be looked for', { error: messageOf(error) }))
      .finally(() => {
        this.#looking = null
        if (!this.#lookAgain) return
        this.#lookAgain = false
        this.look()
      })
  }

  #close(): void {
    this.#stop.abort()
    this.#closed()
  }

  async #keep(bell: Bell): Promise<void> {
    const { store, now } = this.#hub
    const { signal } = this.#stop
    using ear = bell.listen(`realm ${this.#realmId}`)
    while (!signal.aborted) {
      const deadline = await nextDeadline(store, this.#realmId, now()).catch(() => null)
      const ms = deadline === null ? LOOK_MS : Math.max(SHORTEST_MS, deadline - now())
      await ear.wait(Math.min(LOOK_MS, ms), signal)
      if (signal.aborted) return
      this.#round++
      this.#reluctant.clear()
      this.look()
      await this.#looking
    }
  }

  async #wakeForJobs(): Promise<void> {
    const { store, now } = this.#hub
    if (await hasOverdue(store, this.#realmId, now())) {
      await store.write(tx => loseRuns(this.#hub, tx, this.#realmId))
    }
    const waiting = await waitingJobs(store, this.#realmId, now())
    for (const { daemonId, takesSlot } of waiting.pinned) {
      for (const guest of this.#guests) {
        if (guest.daemon.id === daemonId && (!takesSlot || hasRoom(guest))) this.#wake(guest)
      }
    }
    for (const needs of waiting.needs) {
      const guest = this.#fitting(needs)
      if (guest) this.#wake(guest)
    }
  }

  /** The poll that has waited longest of those that may take the job and were not woken in this round. */
  #fitting({ needs, needs_key }: Waiting['needs'][number]): Guest | null {
    let reluctant: Guest | null = null
    for (const guest of this.#guests) {
      if (guest.round === this.#round || !hasRoom(guest) || lacks(needs, guest.daemon).length > 0) continue
      if (unready(needs, guest.daemon).length === 0) return guest
      reluctant ??= guest
    }
    // Whether such a daemon may have the job depends on others, which its own claim finds out.
    if (!reluctant || this.#reluctant.has(needs_key)) return null
    this.#reluctant.add(needs_key)
    return reluctant
  }

  #wake(guest: Guest): void {
    if (guest.round === this.#round) return
    guest.round = this.#round
    guest.wake()
  }
}

/** Whether the daemon gets work now, besides orders about its runs. */
const hasRoom = ({ daemon, slots }: Guest): boolean => daemon.approved_at !== null && !daemon.paused && slots > 0
