// The link to the hub. The daemon always calls: it enrols, sends heartbeats, polls for jobs and sends what its runs
// did. The hub may be away at any time. Runs continue then, changes wait in the outbox, and every loop tries again with
// backoff and jitter.

import type { Static } from 'typebox'
import { CadreError, messageOf } from '../../error.ts'
import type { Log } from '../../log.ts'
import type { Decision, RunRow, Store, SyncOutbox } from '../../run/engine.ts'
import { matches, problems } from '../../schema.ts'
import type { Phase } from '../../team/team.ts'
import { pause, startPause } from '../../wait.ts'
import { type Identity, Whoami } from '../../wire/hub-calls.ts'
import { type AnyLeasedJob, type JobKind, ORDERS, type RunOrder } from '../../wire/jobs.ts'
import {
  Ack,
  type Answer,
  ackedOf,
  type Bulletin,
  Poll,
  PROTOCOL,
  type PublicKey,
  Register,
  Sync,
} from '../../wire/protocol.ts'
import type { HeartbeatOrder, HeartbeatReport } from './heartbeat.ts'
import { HubClient } from './hub-client.ts'

export { HubClient }

/** The name of a fact in the run database: whether the hub has approved this daemon, `no` or `yes`. */
export const APPROVED = 'approved'

export const WAITS_FOR_APPROVAL =
  'this daemon takes no jobs until an operator of its realm approves it (daemons/approve at the hub)'

export interface LinkOptions {
  hubUrl: string
  realmToken: string
  name: string
  version: string
  log: Log
  store: Store
  outbox: SyncOutbox
  /** Of a run, in file order. */
  phasesOf: (row: RunRow) => readonly Phase[]
  /** When this is set (PEM), no other dispatch key is trusted. */
  pinnedKey: string | null
  jobs: JobHost
  agents: () => { name: string; version: string }[]
  workspaces: () => string[]
  /** Called when the hub has accepted the token. */
  enrolled: () => Promise<void>
}

/** What jobs do to this daemon. Each method throws a CadreError, which is reported to the hub. */
export interface JobHost {
  /** Leaf phases that could start now. */
  freeSlots(): number
  /** Starts the dispatched run, only once however often it is called. Resolves when the start is durable. */
  start(runId: string, order: RunOrder): Promise<void>
  ended(runId: string): Promise<unknown>
  cancel(runId: string): Promise<unknown>
  resume(runId: string, fromPhase: string | null): Promise<unknown>
  decide(reviewId: string, decision: Decision): Promise<unknown>
}

/** If the last answered heartbeat is older than this, the hub counts as away. */
const CONNECTED_MS = 45_000
const POLL_MS = 25_000
const BATCH_BYTES = 3_500_000
const LONGEST_PAUSE_MS = 30_000
/** How often to check whether a slot is free or the daemon is enrolled. */
const BUSY_MS = 200

export class Link {
  readonly client: HubClient
  readonly #options: LinkOptions
  readonly #stop = new AbortController()
  readonly #beat = new SharedArrayBuffer(4)
  readonly #running = new Set<string>()
  #keys: PublicKey[] = []
  #teams: Set<string>
  #teamsVersion: string | null
  #daemonId: string | null
  #realmId: string | null
  #answeredAt = 0
  #worker: Worker | null = null
  #beatTimer: Timer | null = null
  #wakeSync: (() => void) | null = null
  #loops: Promise<void>[] = []
  #warnedKey: string | null = null
  #approved: boolean | null = null

  constructor(options: LinkOptions) {
    this.#options = options
    this.client = new HubClient(options.hubUrl, options.realmToken)
    const { store } = options
    this.#daemonId = store.facts.get('daemon_id')
    this.#realmId = store.facts.get('realm_id')
    this.#teamsVersion = store.facts.get('teams_version')
    this.#teams = new Set(JSON.parse(store.facts.get('teams') ?? '[]') as string[])
    options.outbox.onQueued(() => this.#wakeSync?.())
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

  /** Dispatch keys to trust now. */
  keys(): PublicKey[] {
    const { pinnedKey } = this.#options
    if (pinnedKey) return [{ kid: this.#keys.find(key => samePem(key.pem, pinnedKey))?.kid ?? '', pem: pinnedKey }]
    return this.#keys.filter(key => key.not_after === undefined || key.not_after > Date.now())
  }

  /** Whether runs of this team (`@scope/name`) are reported to the realm. */
  lists(team: string): boolean {
    return this.#teams.has(team)
  }

  /**
   * Enrols and starts the loops. If the hub is away, it is tried again until it answers. If the hub refuses the token,
   * this throws, so that a wrong token is noticed at the start.
   */
  async start(): Promise<void> {
    try {
      await this.#register()
    } catch (error) {
      if (!(error instanceof CadreError) || error.code !== 'unavailable') throw error
      this.#options.log.warn('the hub does not answer; trying again', { error: error.message })
    }
    this.#loops = [this.#forever('poll', () => this.#poll()), this.#forever('sync', () => this.#sync())]
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    this.#wakeSync?.()
    this.#worker?.terminate()
    if (this.#beatTimer) clearInterval(this.#beatTimer)
    await Promise.all(this.#loops)
  }

  /** The owner of a user token, and the role in this daemon's realm. Throws the hub's error. */
  whoami(pat: string): Promise<Identity> {
    return this.client.call(Whoami, { realm_id: this.#realmId }, { token: pat })
  }

  async #register(): Promise<void> {
    const { store, name, version, agents, workspaces } = this.#options
    const enrolled = await this.client.call(Register, {
      ...(this.#daemonId && { daemon_id: this.#daemonId }),
      name,
      hostname: (await import('node:os')).hostname(),
      version,
      protocol: PROTOCOL,
      capacity: this.#options.jobs.freeSlots(),
      agents: agents(),
      workspaces: workspaces(),
      ...(this.#teamsVersion && { teams_version: this.#teamsVersion }),
    })
    this.#daemonId = enrolled.daemon_id
    this.#realmId = enrolled.realm_id
    store.facts.set('daemon_id', enrolled.daemon_id)
    store.facts.set('realm_id', enrolled.realm_id)
    this.#answeredAt = Date.now()
    this.#learn(enrolled)
    this.#startHeartbeat()
    await this.#options.enrolled()
    this.#options.log.info('enrolled', { hub: this.client.url, daemon: enrolled.daemon_id, realm: enrolled.realm_id })
  }

  /** Stores what replies to register and heartbeat contain. */
  #learn({ dispatch_keys, teams, teams_version, approved }: Bulletin): void {
    this.#keys = dispatch_keys
    this.#learnApproval(approved !== false)
    const { pinnedKey, log, store } = this.#options
    if (pinnedKey && !this.#keys.some(key => samePem(key.pem, pinnedKey))) {
      log.warn('CADRE_DISPATCH_PUBLIC_KEY differs from the hub’s dispatch key: tokens of the hub are refused')
    }
    if (!teams) return
    this.#teams = new Set(teams)
    this.#teamsVersion = teams_version
    store.facts.set('teams', JSON.stringify(teams))
    store.facts.set('teams_version', teams_version)
    this.#tellRunning()
  }

  /** Logs the approval when it changes, and stores it for `doctor`. */
  #learnApproval(approved: boolean): void {
    const before = this.#approved
    if (approved === before) return
    this.#approved = approved
    const { log, store } = this.#options
    store.facts.set(APPROVED, approved ? 'yes' : 'no')
    if (!approved) log.warn(WAITS_FOR_APPROVAL, { daemon: this.#daemonId })
    else if (before === false) log.info('an operator has approved this daemon: it takes jobs now')
  }

  #startHeartbeat(): void {
    this.#worker?.terminate()
    const touch = () => Atomics.store(new Int32Array(this.#beat), 0, Math.floor(Date.now() / 1_000))
    touch()
    this.#beatTimer ??= setInterval(touch, 1_000)
    const worker = new Worker(new URL('./heartbeat.ts', import.meta.url).href)
    worker.onmessage = ({ data }: MessageEvent<HeartbeatReport>) => this.#heard(data)
    worker.onerror = ({ message }) => this.#options.log.error('the heartbeat failed', { error: message })
    this.#worker = worker
    this.#order({
      setup: {
        url: this.client.url,
        token: this.#options.realmToken,
        daemonId: this.#daemonId!,
        beat: this.#beat,
      },
    })
    this.#tellRunning()
  }

  #order(order: HeartbeatOrder): void {
    this.#worker?.postMessage(order)
  }

  #heard(report: HeartbeatReport): void {
    if ('reply' in report) {
      this.#answeredAt = Date.now()
      this.#warnedKey = null
      return this.#learn(report.reply)
    }
    if (this.#warnedKey === report.code) return
    this.#warnedKey = report.code
    this.#options.log.warn('heartbeat refused', report)
  }

  async #poll(): Promise<void> {
    const daemon_id = this.#answeredAt === 0 ? null : this.#daemonId
    if (daemon_id === null) return this.#register()
    const slots = this.#options.jobs.freeSlots()
    if (slots === 0) return pause(BUSY_MS, this.#stop.signal)
    const { jobs } = await this.client.call(
      Poll,
      { daemon_id, protocol: PROTOCOL, slots, wait_ms: POLL_MS },
      { timeout: POLL_MS + 15_000, signal: this.#stop.signal },
    )
    if (jobs.length > 0) this.#learnApproval(true)
    await Promise.all(jobs.map(job => this.#take(job)))
  }

  async #take(job: AnyLeasedJob): Promise<void> {
    this.#running.add(job.job_id)
    this.#tellRunning()
    try {
      const refused = await this.#perform(job).then(
        () => null,
        (error: unknown) => ({ error }),
      )
      if (refused) {
        const { error } = refused
        this.#options.log.warn('a job was refused', { job: job.job_id, kind: job.kind, error: messageOf(error) })
        return await this.#ack(job, 'failed', explain(error))
      }
      // A lost answer is not a refusal: the hub delivers the job again, and accepting it again changes nothing.
      await this.#ack(job, 'accepted')
      if (job.kind !== 'run') return await this.#ack(job, 'done')
      void this.#options.jobs
        .ended(job.run_id)
        .then(() => this.#ack(job, 'done'))
        // The run was deleted meanwhile, or the hub is away. The hub learns the end of the run from its synced changes.
        .catch(() => {})
    } finally {
      this.#running.delete(job.job_id)
      this.#tellRunning()
    }
  }

  async #perform({ kind, run_id, payload }: AnyLeasedJob): Promise<unknown> {
    const { jobs } = this.#options
    switch (kind) {
      case 'run':
        return jobs.start(run_id, order('run', payload))
      case 'cancel':
        return jobs.cancel(run_id)
      case 'resume':
        return jobs.resume(run_id, order('resume', payload).from_phase ?? null)
      case 'decide': {
        const { review_id, ...decision } = order('decide', payload)
        return jobs.decide(review_id, decision)
      }
      default:
        throw new CadreError('invalid_request', `this daemon does not know jobs of kind ${kind}; upgrade the daemon`)
    }
  }

  async #ack(job: AnyLeasedJob, status: Answer, error?: string): Promise<void> {
    await this.client.call(Ack, {
      daemon_id: this.#daemonId!,
      protocol: PROTOCOL,
      job_id: job.job_id,
      lease_id: job.lease_id,
      status,
      ...(error !== undefined && { error }),
    })
  }

  #tellRunning(): void {
    this.#order({ running: [...this.#running], teamsVersion: this.#teamsVersion })
  }

  /** Sends the oldest changes, or waits for new ones when there are none. */
  async #sync(): Promise<void> {
    const { outbox, phasesOf, store, log } = this.#options
    const daemon_id = this.#answeredAt === 0 ? null : this.#daemonId
    if (daemon_id === null) return pause(BUSY_MS, this.#stop.signal)
    const changes = await outbox.take(BATCH_BYTES)
    if (changes.length === 0) return this.#nextChange()
    const epoch = store.facts.once('epoch', () => crypto.randomUUID())
    try {
      const { acked_seq, rejected } = await this.client.call(
        Sync,
        { daemon_id, protocol: PROTOCOL, epoch, from_seq: changes[0]!.seq, changes },
        { signal: this.#stop.signal },
      )
      outbox.acknowledge(acked_seq)
      if (rejected.length > 0) log.warn('the hub refused changes', { rejected })
    } catch (error) {
      if (ackedOf(error) === null) throw error
      outbox.restart(log, phasesOf)
    }
  }

  async #nextChange(): Promise<void> {
    // A change that was queued since the last check is found by the next one, after this pause at the latest.
    const pause = startPause(1_000, this.#stop.signal)
    this.#wakeSync = pause.end
    await pause.over
    this.#wakeSync = null
  }

  /** Repeats `step` until the link stops, with growing pauses after failures. */
  async #forever(name: string, step: () => Promise<void>): Promise<void> {
    let failures = 0
    while (!this.#stop.signal.aborted) {
      try {
        await step()
        failures = 0
      } catch (error) {
        if (this.#stop.signal.aborted) return
        failures++
        if (failures === 1) this.#options.log.warn(`${name} failed; trying again`, { error: messageOf(error) })
        const ms = Math.min(LONGEST_PAUSE_MS, 500 * 2 ** failures) * (0.5 + Math.random() / 2)
        await pause(ms, this.#stop.signal)
      }
    }
  }
}

/** The payload of a job of `kind`. Throws `invalid_request` when it does not have the form of that kind. */
function order<K extends JobKind>(kind: K, payload: unknown): Static<(typeof ORDERS)[K]> {
  const form = ORDERS[kind]
  if (matches(form, payload)) return payload
  const details = problems(form, payload)
  throw new CadreError('invalid_request', `the job of kind ${kind} does not have the form that this daemon knows`, {
    details,
  })
}

const samePem = (a: string, b: string): boolean => a.replace(/\s/g, '') === b.replace(/\s/g, '')

/** An error as the hub stores it with the job: the message and its details. */
function explain(error: unknown): string {
  if (!(error instanceof CadreError)) return 'internal error; see the log of the daemon'
  return [error.message, ...(error.details ?? []).map(detail => `${detail.path} ${detail.message}`)].join('; ')
}
