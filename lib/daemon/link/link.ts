// The link to the hub. The daemon always calls: it enrols, sends heartbeats, polls for jobs and sends what its runs
// did. The hub may be away at any time. Runs continue then, changes wait in the outbox, and every loop tries again with
// backoff and jitter.

import type { NetworkPolicy } from '../../agent/fetch.ts'
import { backoff } from '../../backoff.ts'
import { CadreError, messageOf } from '../../error.ts'
import type { RunId } from '../../files/run-id.ts'
import type { Log } from '../../log/log.ts'
import { type Commit, HOME_FACTS, type Store } from '../../run/engine.ts'
import { pause, startPause } from '../../wait.ts'
import { type Identity, Whoami } from '../../wire/calls/auth.ts'
import { Ack, Deregister, Heartbeat, MOST_SLOTS, Poll } from '../../wire/calls/daemon-link.ts'
import type { OfferedAgent } from '../../wire/needs.ts'
import {
  type Bulletin,
  isMoved,
  isUnknownDaemon,
  PROTOCOL,
  type PublicKey,
  type Remembered,
} from '../../wire/protocol.ts'
import { DaemonClient } from './daemon-client.ts'
import { DispatchKeys } from './dispatch-keys.ts'
import type { HeartbeatOrder } from './heartbeat-thread.ts'
import { Heartbeats } from './heartbeats.ts'
import { HubBulletin } from './hub-bulletin.ts'
import type { HubClient } from './hub-client.ts'
import { HubCopies } from './hub-copies.ts'
import { Answers } from './job-answers.ts'
import { JobTable } from './job-table.ts'
import { type JobHost, Jobs } from './jobs.ts'
import type { SyncOutbox } from './outbox/outbox.ts'
import { register, startOf } from './register.ts'
import { SyncSender } from './sync-sender.ts'
import { FileUploads, LANES, type OpenFile } from './uploads.ts'

/** What a hub chooses a daemon by. */
export interface Offer {
  labels: Record<string, string>
  agents: OfferedAgent[]
  workspaces: string[]
  /** Where the commands of dispatched runs run. */
  sandbox: string
}

export interface Offers {
  /** What the daemon offers to runs now. The hub is told when it has changed. */
  current(): Promise<Offer>
  /** Ends what is done to keep the offer current. */
  stop(): Promise<void>
}

export interface LinkOptions {
  hubUrl: string
  realmToken: string
  name: string
  version: string
  /** How many leaf phases the daemon can execute at once. */
  capacity: number
  /** Whether nothing new begins because the disk is full. */
  isDiskFull(): boolean
  log: Log
  store: Store
  commit: Commit
  outbox: SyncOutbox
  /** When this is set (PEM), no other dispatch key is trusted. */
  pinnedKey: string | null
  jobs: JobHost
  offers: Offers
  /** The path of a file of a run. Throws `not_found`. */
  fileOf(runId: RunId, path: string): Promise<OpenFile>
  /** `network.allow` of the settings. */
  network(): Omit<NetworkPolicy, 'literalOrigins'>
  /** Called when the hub has accepted the token. */
  enrolled: () => Promise<void>
  /** The program of the heartbeat's thread. */
  heartbeat?: string
}

/** If the last answered heartbeat is older than this, the hub counts as away. */
const CONNECTED_MS = 45_000
const POLL_MS = 25_000
/** While no slot is free, the hub is asked this often for orders about runs. */
const BUSY_MS = 500
/** How often to check whether what the daemon offers has changed. */
const OFFER_LOOK_MS = 2_000
/** How often to check whether the hub keeps files. */
const NOT_KEPT_LOOK_MS = 1_000
/** How often to check whether the daemon is enrolled. */
const ENROLLED_LOOK_MS = 200

export class Link {
  readonly client: HubClient
  readonly #options: LinkOptions
  readonly #stop = new AbortController()
  readonly #jobs: Jobs
  readonly #syncSender: SyncSender
  readonly #uploads: FileUploads
  readonly #keys: DispatchKeys
  readonly #heartbeats: Heartbeats
  readonly #bulletin: HubBulletin
  readonly #hubCopies: HubCopies
  #daemonId: string | null
  #realmId: string | null
  #answeredAt = 0
  #wakeSync: (() => void) | null = null
  #wakePoll: (() => void) | null = null
  #change: NodeJS.Immediate | null = null
  #loops: Promise<void>[] = []
  /** The offer that the hub has, or an empty text when that is in doubt. Null before it has enrolled this daemon. */
  #offered: string | null = null
  /** The hub has said that it does not know this daemon, so its database was restored from an older copy. */
  #forgotten = false
  #polling = new AbortController()

  constructor(options: LinkOptions) {
    this.#options = options
    const { store } = options
    this.#hubCopies = new HubCopies(store)
    this.client = new DaemonClient(
      options.hubUrl,
      options.realmToken,
      () => this.#hubCopies.told,
      memory => this.#remember(memory),
    )
    this.#daemonId = store.facts.get('daemon_id')
    this.#realmId = store.facts.get('realm_id')
    this.#bulletin = new HubBulletin(store, options.log)
    this.#syncSender = new SyncSender({
      ...options,
      client: this.client,
      hubCopies: this.#hubCopies,
      answered: () => answers.settled(),
    })
    options.outbox.onQueued(() => this.#wakeSync?.())
    const { log, fileOf, network } = options
    const daemonId = () => this.#enrolledAs()
    this.#uploads = new FileUploads({
      ...{
        rows: options.outbox.uploads,
        client: this.client,
        log,
        signal: this.#stop.signal,
        daemonId,
        fileOf,
        network,
      },
    })
    const { pinnedKey, realmToken, hubUrl, heartbeat } = options
    const { signal } = this.#stop
    this.#keys = new DispatchKeys({ pinnedKey, log, signal, ask: () => this.#askForKeys() })
    this.#heartbeats = new Heartbeats({
      ...{ url: hubUrl, token: realmToken, log, signal, program: heartbeat },
      state: () => this.#state(),
      start: startOf(store),
      moved: message => this.#leave(message),
      heard: bulletin => {
        this.#answeredAt = Date.now()
        this.#remember(bulletin.memory)
        this.#learn(bulletin)
      },
    })
    const answers = new Answers((first, others) =>
      this.client.call(
        Ack,
        {
          daemon_id: this.#enrolledAs(),
          protocol: PROTOCOL,
          ...first,
          ...(others.length > 0 && { others }),
        },
        { signal: this.#stop.signal },
      ),
    )
    this.#jobs = new Jobs({
      book: new JobTable(store.db, options.commit),
      host: options.jobs,
      log: options.log,
      signal: this.#stop.signal,
      changed: () => this.#jobsChanged(),
      startPause,
      ack: (job, status, error) => answers.give(job, status, error),
    })
  }

  get daemonId(): string | null {
    return this.#daemonId
  }

  get realmId(): string | null {
    return this.#realmId
  }

  /** Whether the hub has answered a heartbeat recently. */
  connected(): boolean {
    return Date.now() - this.#answeredAt < CONNECTED_MS
  }

  /** Whether `token` is the realm token with which this link was opened. */
  uses(token: string): boolean {
    return token === this.#options.realmToken
  }

  keys(): readonly PublicKey[] {
    return this.#keys.trusted
  }

  renewKeys(): Promise<void> {
    return this.#keys.renew()
  }

  async #askForKeys(): Promise<void> {
    const beat = { daemon_id: this.#enrolledAs(), protocol: PROTOCOL, ...startOf(this.#options.store) }
    const reply = await this.client.call(Heartbeat, beat, { signal: this.#stop.signal }).catch(() => null)
    if (reply) this.#learn(reply)
  }

  /** Whether runs of this team (`@scope/name`) are reported to the realm. */
  lists(team: string): boolean {
    return this.#bulletin.lists(team)
  }

  /**
   * Enrols and starts the loops. If the hub is away, it is tried again until it answers. If the hub refuses the token,
   * this throws, so that a wrong token is noticed at the start.
   */
  async start(): Promise<void> {
    try {
      await this.#register()
    } catch (error) {
      if (isMoved(error)) this.#leave(messageOf(error))
      if (!(error instanceof CadreError) || error.code !== 'unavailable') throw error
      this.#options.log.warn('the hub does not answer; trying again', { error: error.message })
    }
    this.#jobs.start()
    this.#loops = [
      this.#forever('poll', () => this.#poll()),
      this.#forever('offer', () => this.#offer()),
      this.#forever('sync', () => this.#sync()),
      ...Array.from({ length: LANES }, () => this.#forever('upload', () => this.#upload())),
    ]
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    this.#wakeSync?.()
    this.#heartbeats.stop()
    await Promise.all([...this.#loops, this.#jobs.stop(), this.#options.offers.stop()])
    this.#hubCopies.store()
  }

  /** The owner of a user token, and the role in this daemon's realm. Throws the hub's error. */
  whoami(pat: string): Promise<Identity> {
    return this.client.call(Whoami, { realm_id: this.#realmId }, { token: pat })
  }

  async #register(): Promise<void> {
    const { store, name, version, capacity } = this.#options
    const offer = await this.#options.offers.current()
    const again = this.#forgotten
    const enrolled = await register(this.client, store, { name, version, capacity, ...offer }, { again })
    this.#forgotten = false
    this.#daemonId = enrolled.daemon_id
    this.#realmId = enrolled.realm_id
    this.#answeredAt = Date.now()
    this.#learn(enrolled)
    this.#offered = JSON.stringify(offer)
    this.#syncSender.doubt()
    this.#heartbeats.start(enrolled.daemon_id)
    await this.#removeFormer()
    await this.#options.enrolled()
    this.#options.log.info('enrolled', { hub: this.client.url, daemon: enrolled.daemon_id, realm: enrolled.realm_id })
  }

  /** Removes the daemon at the hub that this home was until a person said that it was moved. */
  async #removeFormer(): Promise<void> {
    const { facts } = this.#options.store
    const daemon_id = facts.get(HOME_FACTS.left)
    if (daemon_id === null) return
    try {
      await this.client.call(Deregister, { daemon_id, protocol: PROTOCOL })
    } catch (error) {
      if (error instanceof CadreError && error.code === 'unavailable') throw error
      this.#options.log.warn('a former daemon of this home stays at the hub', {
        daemon: daemon_id,
        error: messageOf(error),
      })
    }
    facts.drop(HOME_FACTS.left)
  }

  /** Ends the link, because the hub has said that this daemon goes on elsewhere. */
  #leave(message: string): void {
    if (this.#stop.signal.aborted) return
    this.#options.store.facts.set(HOME_FACTS.movedAway, message)
    this.#options.log.error('the link to the hub ends', { error: message })
    this.#answeredAt = 0
    this.#stop.abort()
    this.#heartbeats.stop()
    this.#wakeSync?.()
  }

  /** Takes in what replies to register and heartbeat contain. */
  #learn(bulletin: Bulletin): void {
    this.#keys.learn(bulletin.dispatch_keys)
    if (this.#bulletin.learn(bulletin, this.#daemonId)) this.#tellRunning()
  }

  async #poll(): Promise<void> {
    if (this.#answeredAt === 0) await this.#register()
    const daemon_id = this.#enrolledAs()
    this.#polling = new AbortController()
    const slots = await this.#slots()
    const wait_ms = slots > 0 ? POLL_MS : 0
    const full_disk = this.#options.isDiskFull()
    const { jobs } = await this.client.call(
      Poll,
      {
        daemon_id,
        protocol: PROTOCOL,
        slots,
        wait_ms,
        ...startOf(this.#options.store),
        ...(full_disk && { full_disk }),
      },
      { timeout: wait_ms + 15_000, signal: AbortSignal.any([this.#stop.signal, this.#polling.signal]) },
    )
    if (jobs.length === 0) return
    this.#bulletin.learnApproval(true, daemon_id)
    await this.#jobs.take(jobs)
  }

  /**
   * The number of slots that a poll asks for. While there is none, it waits for one, but only a moment, because orders,
   * such as a cancel, come to a daemon without a free slot, too.
   */
  async #slots(): Promise<number> {
    const free = () => Math.min(MOST_SLOTS, Math.max(0, this.#options.jobs.freeSlots() - this.#jobs.held))
    if (free() > 0) return free()
    const { over, end } = startPause(BUSY_MS, this.#stop.signal)
    this.#wakePoll = () => free() > 0 && end()
    await over
    this.#wakePoll = null
    return free()
  }

  /** Tells the hub what is offered when that has changed: a label, an agent, what a doctor found, a workspace. */
  async #offer(): Promise<void> {
    await pause(OFFER_LOOK_MS, this.#stop.signal)
    if (this.#offered === null || this.#stop.signal.aborted) return
    const offer = await this.#options.offers.current()
    const text = JSON.stringify(offer)
    if (text === this.#offered) return
    const beat = { daemon_id: this.#enrolledAs(), protocol: PROTOCOL, ...startOf(this.#options.store), ...offer }
    await this.client.call(Heartbeat, beat, { signal: this.#stop.signal })
    this.#offered = text
  }

  /** Throws `unavailable` before the hub has answered for the first time, because it may not know this daemon. */
  #enrolledAs(): string {
    if (this.#answeredAt !== 0 && this.#daemonId !== null) return this.#daemonId
    throw new CadreError('unavailable', `the hub at ${this.client.url} has not enrolled this daemon yet`)
  }

  /** Jobs change many at a time. What follows happens once for all that change in a turn of the event loop. */
  #jobsChanged(): void {
    this.#change ??= setImmediate(() => {
      this.#change = null
      if (this.#stop.signal.aborted) return
      this.#tellRunning()
      this.#wakePoll?.()
    })
  }

  #tellRunning(): void {
    this.#heartbeats.tell(this.#state())
  }

  #state(): HeartbeatOrder {
    const { memory = null } = this.#hubCopies.told
    return { running: this.#jobs.leased, teamsVersion: this.#bulletin.teamsVersion, memory }
  }

  /** Sends the oldest changes, or waits for new ones when there are none. */
  async #sync(): Promise<void> {
    const daemon_id = this.#answeredAt === 0 ? null : this.#daemonId
    if (daemon_id === null) return pause(ENROLLED_LOOK_MS, this.#stop.signal)
    if (await this.#syncSender.send(daemon_id, this.#stop.signal)) this.#uploads.wake()
    else await this.#nextChange()
  }

  /** Sends a file of a run, if the hub keeps files. */
  async #upload(): Promise<void> {
    if (!this.#bulletin.keepsFiles) return pause(NOT_KEPT_LOOK_MS, this.#stop.signal)
    return this.#uploads.step()
  }

  async #nextChange(): Promise<void> {
    // A change that was queued since the last check is found by the next one, after this pause at the latest.
    const pause = startPause(1_000, this.#stop.signal)
    this.#wakeSync = pause.end
    await pause.over
    this.#wakeSync = null
  }

  /** Takes in what a reply says of the hub's database. */
  #remember(memory: Remembered | undefined): void {
    if (!this.#hubCopies.learn(memory)) return
    this.#options.log.warn('the hub is on an older copy of its database: it gets everything again that it may lack')
    this.#wakeSync?.()
  }

  /** A hub that was away may come back as an older copy of itself. */
  #doubt(): void {
    this.#syncSender.doubt()
    if (this.#offered !== null) this.#offered = ''
  }

  /** The next poll enrols. The present one may wait for jobs, which cannot come. */
  #enrolAgain(): void {
    this.#forgotten = true
    this.#answeredAt = 0
    this.#polling.abort()
  }

  /** Repeats `step` until the link stops, with growing pauses after failures. */
  async #forever(name: string, step: () => Promise<void>): Promise<void> {
    let failures = 0
    let told = ''
    while (!this.#stop.signal.aborted) {
      try {
        await step()
        failures = 0
        told = ''
      } catch (error) {
        if (this.#stop.signal.aborted) return
        if (isMoved(error)) return this.#leave(messageOf(error))
        if (isUnknownDaemon(error)) this.#enrolAgain()
        if (error instanceof CadreError && error.code === 'unavailable') this.#doubt()
        failures++
        const message = messageOf(error)
        if (message !== told) this.#options.log.warn(`${name} failed; trying again`, { error: message })
        told = message
        await pause(backoff(failures), this.#stop.signal)
      }
    }
  }
}
