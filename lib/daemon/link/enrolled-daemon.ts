// This daemon as its hub knows it: its ids, what it offers, and when the hub last answered. It enrols, enrols again when
// the hub has forgotten it, and reports to the hub when what it offers has changed.

import { CadreError, messageOf } from '../../error.ts'
import type { Log } from '../../log/log.ts'
import { HOME_FACTS, type Store } from '../../run/engine.ts'
import { Deregister, Heartbeat } from '../../wire/calls/daemon-link.ts'
import type { OfferedAgent } from '../../wire/needs.ts'
import { type Bulletin, PROTOCOL } from '../../wire/protocol.ts'
import type { HubClient } from './hub-client.ts'
import { type Introduction, register, startOf } from './register.ts'

/** What a hub chooses a daemon by. */
export interface Offer {
  labels: Record<string, string>
  agents: OfferedAgent[]
  workspaces: string[]
  /** Where the commands of dispatched runs run. */
  sandbox: string
  /** The kinds of jobs that it takes. */
  kinds: string[]
  /** Where it can tell people something, as `agent:channel`. */
  accounts: string[]
  /** The environments of its settings, which runs can have. */
  environments: string[]
  /** The last request of an operator after which its doctors were asked; absent without one. */
  examined?: number
}

export interface Offers {
  /** What the daemon offers to runs now. A change is reported to the hub. */
  current(): Promise<Offer>
  /** An operator has asked, at that time, that doctors look now. */
  examine(asked: number): void
  /** Ends what is done to keep the offer current. */
  stop(): Promise<void>
}

interface EnrolledDaemonOptions {
  client: HubClient
  store: Store
  offers: Offers
  log: Log
  introduction: Pick<Introduction, 'name' | 'version' | 'capacity'>
  /** Called with each reply of the hub that enrols this daemon, before the loops go on. */
  enrolled: (bulletin: Bulletin, daemonId: string) => void
}

/** If the last answer is older than this, the hub counts as away. */
const CONNECTED_MS = 45_000

export class EnrolledDaemon {
  readonly #options: EnrolledDaemonOptions
  #id: string | null
  #realmId: string | null
  /**
   * By the monotonic clock; null while the hub has not answered this process, or does not know this daemon any more.
   */
  #answeredAt: number | null = null
  /** The offer that the hub has, or an empty text when that is in doubt. Null before it has enrolled this daemon. */
  #offered: string | null = null
  /** The hub has said that it does not know this daemon, so its database was restored from an older copy. */
  #forgotten = false

  constructor(options: EnrolledDaemonOptions) {
    this.#options = options
    const { facts } = options.store
    this.#id = facts.get('daemon_id')
    this.#realmId = facts.get('realm_id')
  }

  /** The id of this daemon, as an earlier process may have learnt it; null when it was never enrolled. */
  get knownId(): string | null {
    return this.#id
  }

  get realmId(): string | null {
    return this.#realmId
  }

  /** Whether the hub has enrolled this daemon, and has not forgotten it since. */
  get isEnrolled(): boolean {
    return this.#answeredAt !== null && this.#id !== null
  }

  /** Whether the hub has answered recently. */
  get isConnected(): boolean {
    return this.#answeredAt !== null && performance.now() - this.#answeredAt < CONNECTED_MS
  }

  /** Throws `unavailable` before the hub has answered for the first time, because it may not know this daemon. */
  get id(): string {
    if (this.isEnrolled) return this.#id!
    throw new CadreError('unavailable', `the hub at ${this.#options.client.url} has not enrolled this daemon yet`)
  }

  answered(): void {
    this.#answeredAt = performance.now()
  }

  /** The hub counts as away until this daemon has enrolled again. */
  leave(): void {
    this.#answeredAt = null
  }

  /** The hub does not know this daemon: it has to enrol again. */
  forget(): void {
    this.#forgotten = true
    this.#answeredAt = null
  }

  /** A hub that was away may come back as an older copy of itself, which lacks the offer. */
  doubt(): void {
    if (this.#offered !== null) this.#offered = ''
  }

  async enrol(): Promise<void> {
    const { client, enrolled, introduction, log, offers, store } = this.#options
    const offer = await offers.current()
    const bulletin = await register(client, store, { ...introduction, ...offer }, { again: this.#forgotten })
    this.#forgotten = false
    this.#id = bulletin.daemon_id
    this.#realmId = bulletin.realm_id
    this.answered()
    this.#offered = JSON.stringify(offer)
    enrolled(bulletin, bulletin.daemon_id)
    await this.#removeFormer()
    log.info('enrolled', { hub: client.url, daemon: bulletin.daemon_id, realm: bulletin.realm_id })
  }

  /** Tells the hub what is offered when that has changed: a label, an agent, what a doctor found, a workspace. */
  async offerChanges(signal: AbortSignal): Promise<void> {
    if (this.#offered === null) return
    const { client, offers, store } = this.#options
    const offer = await offers.current()
    const text = JSON.stringify(offer)
    if (text === this.#offered) return
    await client.call(Heartbeat, { daemon_id: this.id, protocol: PROTOCOL, ...startOf(store), ...offer }, { signal })
    this.#offered = text
  }

  /** Removes the daemon at the hub that this home was until a person said that it was moved. */
  async #removeFormer(): Promise<void> {
    const { client, log, store } = this.#options
    const daemon_id = store.facts.get(HOME_FACTS.left)
    if (daemon_id === null) return
    try {
      await client.call(Deregister, { daemon_id, protocol: PROTOCOL })
    } catch (error) {
      if (error instanceof CadreError && error.code === 'unavailable') throw error
      log.warn('a former daemon of this home stays at the hub', { daemon: daemon_id, error: messageOf(error) })
    }
    store.facts.drop(HOME_FACTS.left)
  }
}
