// Polls of daemons that wait for jobs, by realm. At a notification, when a deadline has passed and every few seconds, each
// realm asks the database once which jobs wait, and wakes one poll for each kind of need. A poll that was woken makes its
// realm look again, so that the next one is woken as long as there is work. Ten thousand polls that wait cost as much as
// one, and a dispatch wakes one of them.

import { messageOf } from '../../error.ts'
import type { DaemonRow } from '../access/daemons.ts'
import type { Hub } from '../core/hub.ts'
import type { Notifier } from '../core/notifier.ts'
import { hasAccount } from '../tells/accounts.ts'
import { accountsWaiting } from '../tells/tell-jobs.ts'
import { type WaitingJobs, waitingJobs } from './claims.ts'
import { missingNeeds, unreadyAgents } from './job-needs.ts'
import { endUndeliverableRuns } from './run-ends.ts'
import { hasUndeliverableJobs, nextDeadline } from './undeliverable-jobs.ts'

/** A realm looks for jobs this often even when nothing wakes it. */
const LOOK_MS = 5_000
const SHORTEST_MS = 50

/** A poll that waits. */
export interface WaitingPoll extends Disposable {
  /**
   * Resolves when there may be a job for the daemon, or with false after `ms` or when `signal` fires. A wake-up between
   * two waits ends the next wait at once.
   */
  wait(daemon: DaemonRow, ms: number, signal: AbortSignal): Promise<boolean>
}

interface PollState {
  daemon: DaemonRow
  slots: number
  /** The round in which it was last woken. */
  round: number
  wake(): void
}

export class WaitingPolls {
  readonly #hub: Hub
  readonly #realms = new Map<string, RealmPolls>()

  constructor(hub: Hub) {
    this.#hub = hub
  }

  /** Adds a poll. It is added before it looks for jobs itself, so that none is missed in between. */
  add(daemon: DaemonRow, slots: number): WaitingPoll {
    const id = daemon.realm_id
    const realm = this.#realms.get(id) ?? new RealmPolls(this.#hub, id, () => this.#realms.delete(id))
    this.#realms.set(id, realm)
    return realm.add(daemon, slots)
  }
}

class RealmPolls {
  readonly #hub: Hub
  readonly #realmId: string
  readonly #closed: () => void
  readonly #stop = new AbortController()
  /** In the order in which they came. */
  readonly #polls = new Set<PollState>()
  #round = 0
  /** The needs for which a daemon was woken in this round although an agent is not ready on it. */
  readonly #reluctant = new Set<string>()
  #looking: Promise<void> | null = null
  #lookAgain = false

  constructor(hub: Hub, realmId: string, closed: () => void) {
    this.#hub = hub
    this.#realmId = realmId
    this.#closed = closed
    void this.#keep(hub.notifier)
  }

  add(daemon: DaemonRow, slots: number): WaitingPoll {
    let woken = false
    let end = () => {}
    const wake = () => {
      woken = true
      end()
    }
    const poll: PollState = { daemon, slots, round: -1, wake }
    this.#polls.add(poll)
    this.#hub.counts.pollsWaiting++
    // What the daemon may take has changed.
    const unsubscribe = this.#hub.notifier.on(`daemon ${daemon.id}`, wake)
    return {
      wait: async (now, ms, signal) => {
        poll.daemon = now
        // The others have waited for longer than one that was just woken.
        this.#polls.delete(poll)
        this.#polls.add(poll)
        if (poll.round >= 0) this.look()
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
        unsubscribe()
        this.#polls.delete(poll)
        this.#hub.counts.pollsWaiting--
        if (this.#polls.size === 0) return this.#close()
        if (poll.round >= 0 || woken) this.look()
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

  async #keep(notifier: Notifier): Promise<void> {
    const { store, lived } = this.#hub
    const { signal } = this.#stop
    using notifications = notifier.subscribe(`realm ${this.#realmId}`)
    while (!signal.aborted) {
      const deadline = await nextDeadline(store, this.#realmId, lived()).catch(() => null)
      const ms = deadline === null ? LOOK_MS : Math.max(SHORTEST_MS, deadline - lived())
      await notifications.wait(Math.min(LOOK_MS, ms), signal)
      if (signal.aborted) return
      this.#round++
      this.#reluctant.clear()
      this.look()
      await this.#looking
    }
  }

  async #wakeForJobs(): Promise<void> {
    const { store, lived } = this.#hub
    if (await hasUndeliverableJobs(store, this.#realmId, lived())) {
      await store.write(tx => endUndeliverableRuns(this.#hub, tx, this.#realmId))
    }
    const waiting = await waitingJobs(store, this.#realmId, lived())
    for (const { daemonId, takesSlot } of waiting.pinned) {
      for (const poll of this.#polls) {
        if (poll.daemon.id === daemonId && (!takesSlot || takesRuns(poll))) this.#wake(poll)
      }
    }
    for (const needs of waiting.needs) {
      const poll = this.#fitting(needs)
      if (poll) this.#wake(poll)
    }
    for (const account of await accountsWaiting(store, this.#realmId, lived())) {
      const may = ({ round, daemon }: PollState) =>
        round !== this.#round && daemon.approved_at !== null && hasAccount(daemon, account)
      const poll = this.#polls.values().find(may)
      if (poll) this.#wake(poll)
    }
  }

  /** The poll that has waited longest of those that may take the job and were not woken in this round. */
  #fitting({ needs, needs_key }: WaitingJobs['needs'][number]): PollState | null {
    let reluctant: PollState | null = null
    for (const poll of this.#polls) {
      if (poll.round === this.#round || !takesRuns(poll) || missingNeeds(needs, poll.daemon).length > 0) continue
      if (unreadyAgents(needs, poll.daemon).length === 0) return poll
      reluctant ??= poll
    }
    // Whether such a daemon may have the job depends on others, which its own claim finds out.
    if (!reluctant || this.#reluctant.has(needs_key)) return null
    this.#reluctant.add(needs_key)
    return reluctant
  }

  #wake(poll: PollState): void {
    if (poll.round === this.#round) return
    poll.round = this.#round
    poll.wake()
  }
}

/** Whether the daemon gets work now, besides orders about its runs. */
const takesRuns = ({ daemon, slots }: PollState): boolean => daemon.approved_at !== null && !daemon.paused && slots > 0
