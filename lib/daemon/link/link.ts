// The loops of the link to the hub. The daemon always calls: it sends heartbeats, polls for jobs and sends what its runs
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
import { Ack, Heartbeat, MOST_SLOTS, Poll } from '../../wire/calls/daemon-link.ts'
import {
  type Bulletin,
  isMoved,
  isUnknownDaemon,
  PROTOCOL,
  type PublicKey,
  type Remembered,
} from '../../wire/protocol.ts'
import type { LinkStanding } from '../access/remote-credentials.ts'
import { DaemonClient } from './daemon-client.ts'
import { DispatchKeys } from './dispatch-keys.ts'
import { EnrolledDaemon, type Offers } from './enrolled-daemon.ts'
import type { HeartbeatOrder } from './heartbeat-thread.ts'
import { Heartbeats } from './heartbeats.ts'
import { confirms, HubBulletin } from './hub-bulletin.ts'
import { type HubClient, troubleCode } from './hub-client.ts'
import { HubCopies } from './hub-copies.ts'
import { Answers } from './job-answers.ts'
import { JobTable } from './job-table.ts'
import { type JobHost, Jobs } from './jobs.ts'
import { LinkTroubles } from './link-troubles.ts'
import type { SyncOutbox } from './outbox/outbox.ts'
import type { OwnStanding } from './own-standing.ts'
import { startOf } from './register.ts'
import { SyncSender } from './sync-sender.ts'
import { FileUploads, LANES, type OpenFile } from './uploads.ts'

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
  /** The lived time of the home. */
  lived(): number
  /** Called when the hub believes its clock and that shows the same time as this machine's, if it runs on another one. */
  confirmed(): void
  outbox: SyncOutbox
  /** When this is set (PEM), no other dispatch key is trusted. */
  pinnedKey: string | null
  jobs: JobHost
  offers: Offers
  /** The path of a file of a run. Throws `not_found`. */
  fileOf(runId: RunId, path: string): Promise<OpenFile>
  /** `network.allow` of the settings. */
  network(): Omit<NetworkPolicy, 'literalOrigins'>
  standing: OwnStanding
  /** Called when the hub has accepted the token. */
  enrolled: () => Promise<void>
  /** The program of the heartbeat's thread. */
  heartbeat?: string
}

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
  readonly #self: EnrolledDaemon
  readonly #jobs: Jobs
  readonly #syncSender: SyncSender
  readonly #uploads: FileUploads
  readonly #keys: DispatchKeys
  readonly #heartbeats: Heartbeats
  readonly #bulletin: HubBulletin
  readonly #hubCopies: HubCopies
  readonly #troubles: LinkTroubles
  #wakeSync: (() => void) | null = null
  #wakePoll: (() => void) | null = null
  #change: NodeJS.Immediate | null = null
  #loops: Promise<void>[] = []
  #polling = new AbortController()

  constructor(options: LinkOptions) {
    this.#options = options
    const { capacity, fileOf, heartbeat, hubUrl, log, name, network, offers } = options
    const { outbox, pinnedKey, realmToken, store, version } = options
    const { signal } = this.#stop
    this.#hubCopies = new HubCopies(store)
    this.#troubles = new LinkTroubles(options.jobs.mask)
    this.client = new DaemonClient(
      hubUrl,
      realmToken,
      () => this.#hubCopies.callFields,
      memory => this.#remember(memory),
    )
    this.#self = new EnrolledDaemon({
      ...{ client: this.client, store, offers, log, introduction: { name, version, capacity } },
      enrolled: (bulletin, daemonId) => {
        this.#learn(bulletin)
        this.#syncSender.doubt()
        this.#heartbeats.start(daemonId)
      },
    })
    this.#bulletin = new HubBulletin(store, log)
    this.#syncSender = new SyncSender({
      ...options,
      client: this.client,
      hubCopies: this.#hubCopies,
      answered: () => answers.settled(),
    })
    outbox.onQueued(() => this.#wakeSync?.())
    this.#uploads = new FileUploads({
      ...{ rows: outbox.uploads, client: this.client, log, signal, fileOf, network, lived: options.lived },
      mask: options.jobs.mask,
      daemonId: () => this.#self.id,
    })
    this.#keys = new DispatchKeys({ pinnedKey, log, signal, fetchKeys: () => this.#fetchKeys() })
    this.#heartbeats = new Heartbeats({
      ...{ url: hubUrl, token: realmToken, log, signal, program: heartbeat },
      state: () => this.#state(),
      start: startOf(store),
      moved: message => this.#leave(message),
      refused: error => this.#troubles.failed('heartbeat', error),
      received: (bulletin, ahead) => {
        if (confirms(hubUrl, bulletin, ahead)) options.confirmed()
        this.#self.answered()
        this.#troubles.succeeded('heartbeat')
        this.#remember(bulletin.memory)
        this.#learn(bulletin)
        void options.standing.renew(-Math.round(ahead)).then(() => this.#sendState())
      },
    })
    const answers = new Answers((first, others) =>
      this.client.call(
        Ack,
        { daemon_id: this.#self.id, protocol: PROTOCOL, ...first, ...(others.length > 0 && { others }) },
        { signal },
      ),
    )
    this.#jobs = new Jobs({
      book: new JobTable(store.db, options.commit),
      host: options.jobs,
      log,
      signal,
      changed: () => this.#jobsChanged(),
      startPause,
      lived: options.lived,
      ack: (job, status, error) => answers.give(job, status, error),
    })
  }

  get daemonId(): string | null {
    return this.#self.knownId
  }

  get realmId(): string | null {
    return this.#self.realmId
  }

  /** Whether the hub has answered a heartbeat recently. */
  connected(): boolean {
    return this.#self.isConnected
  }

  standing(): LinkStanding {
    return { url: this.client.url, paused: this.#bulletin.isPaused, troubles: this.#troubles.all }
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

  async #fetchKeys(): Promise<void> {
    const beat = { daemon_id: this.#self.id, protocol: PROTOCOL, ...startOf(this.#options.store) }
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
      await this.#enrol()
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
    return this.client.call(Whoami, { realm_id: this.#self.realmId }, { token: pat })
  }

  async #enrol(): Promise<void> {
    await this.#self.enrol()
    await this.#options.enrolled()
  }

  /** Ends the link, because the hub has said that this daemon goes on elsewhere. */
  #leave(message: string): void {
    if (this.#stop.signal.aborted) return
    this.#options.store.facts.set(HOME_FACTS.movedAway, message)
    this.#options.log.error('the link to the hub ends', { error: message })
    this.#self.leave()
    this.#stop.abort()
    this.#heartbeats.stop()
    this.#wakeSync?.()
  }

  /** Takes in what replies to register and heartbeat contain. */
  #learn(bulletin: Bulletin): void {
    this.#keys.learn(bulletin.dispatch_keys)
    if (bulletin.examine !== undefined) this.#options.offers.examine(bulletin.examine)
    if (this.#bulletin.learn(bulletin, this.#self.knownId)) this.#sendState()
  }

  async #poll(): Promise<void> {
    if (!this.#self.isEnrolled) await this.#enrol()
    const daemon_id = this.#self.id
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

  async #offer(): Promise<void> {
    await pause(OFFER_LOOK_MS, this.#stop.signal)
    if (!this.#stop.signal.aborted) await this.#self.offerChanges(this.#stop.signal)
  }

  /** Jobs change many at a time. What follows happens once for all that change in a turn of the event loop. */
  #jobsChanged(): void {
    this.#change ??= setImmediate(() => {
      this.#change = null
      if (this.#stop.signal.aborted) return
      this.#sendState()
      this.#wakePoll?.()
    })
  }

  #sendState(): void {
    this.#heartbeats.send(this.#state())
  }

  #state(): HeartbeatOrder {
    const { memory = null } = this.#hubCopies.callFields
    const { latest: standing } = this.#options.standing
    return { running: this.#jobs.leased, teamsVersion: this.#bulletin.teamsVersion, memory, standing }
  }

  /** Sends the oldest changes, or waits for new ones when there are none. */
  async #sync(): Promise<void> {
    if (!this.#self.isEnrolled) return pause(ENROLLED_LOOK_MS, this.#stop.signal)
    if (await this.#syncSender.send(this.#self.id, this.#stop.signal)) this.#uploads.wake()
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
    this.#self.doubt()
  }

  /** The next poll enrols. The present one may wait for jobs, which cannot come. */
  #enrolAgain(): void {
    this.#self.forget()
    this.#polling.abort()
  }

  /** Repeats `step` until the link stops, with growing pauses after failures. */
  async #forever(name: string, step: () => Promise<void>): Promise<void> {
    let failures = 0
    let logged = ''
    while (!this.#stop.signal.aborted) {
      try {
        this.#troubles.begun(name)
        await step()
        this.#troubles.succeeded(name)
        failures = 0
        logged = ''
      } catch (error) {
        if (this.#stop.signal.aborted) return
        if (isMoved(error)) return this.#leave(messageOf(error))
        if (isUnknownDaemon(error)) this.#enrolAgain()
        if (error instanceof CadreError && error.code === 'unavailable') this.#doubt()
        failures++
        const message = messageOf(error)
        this.#troubles.failed(name, { code: troubleCode(error), message })
        if (message !== logged) this.#options.log.warn(`${name} failed; trying again`, { error: message })
        logged = message
        await pause(backoff(failures), this.#stop.signal)
      }
    }
  }
}
