// The daemon: one object that owns a home and connects its parts: database, agents, settings, secrets and engine.
// `serve` adds HTTP for as long as the process lives, and other commands add it while something runs
// (cli/backend/command-host.ts). Both hold the lock of the home.

import type { Database } from 'bun:sqlite'
import { growLog, openRunDatabase, readMigrations, versionOf } from '../../../db/open.ts'
import { type Catalogue, findAgents } from '../../agent/catalogue.ts'
import { endLeftGroups } from '../../agent/commands/processes.ts'
import { messageOf } from '../../error.ts'
import { runFolder } from '../../files/run-id.ts'
import { metricsOptions } from '../../http/metrics.ts'
import { pageAddress } from '../../http/page-address.ts'
import type { Json } from '../../json.ts'
import type { Line, Log, ProcessLog } from '../../log/log.ts'
import { openTelemetry, type Telemetry } from '../../log/telemetry.ts'
import { build } from '../../program/version.ts'
import { Engine, Reads, RootSecrets, Seal, Store } from '../../run/engine.ts'
import type { Masked, MaskedText } from '../../secrets/masked.ts'
import { openSettings, type Settings } from '../../settings/settings.ts'
import { refuseSessionForm } from '../access/api-key.ts'
import { Mask } from '../access/mask.ts'
import type { Remote } from '../access/remote-credentials.ts'
import { Ages } from '../home/ages.ts'
import { Audit } from '../home/audit.ts'
import { type Copied, copiedOf, settlePlace } from '../home/copied-home.ts'
import { databaseFile, makeHome, processesFolder, searchFile } from '../home/home.ts'
import { HookSecrets } from '../home/hook-secrets.ts'
import { type Lock, takeLock } from '../home/lock.ts'
import { onOwnSecrets, ownSecrets } from '../home/own-secrets.ts'
import { MIGRATIONS } from '../home/run-database.ts'
import { SyncOutbox } from '../link/outbox/outbox.ts'
import { Bundles } from '../packages/bundle-cache.ts'
import { Packages } from '../packages/packages.ts'
import { keepsNone, Sandboxes } from '../packages/sandboxes.ts'
import { makeUnreadable } from '../packages/unreadable.ts'
import { Tells } from '../tells/tells.ts'
import { AgentVersions } from './agent-versions.ts'
import type { Drain } from './drain.ts'
import { engineHost } from './engine-host.ts'
import { type Environment, logLimitOf, settleOf, slotsOf } from './limits.ts'
import { OpenRuns } from './open-runs.ts'
import { leadsTo } from './review-next.ts'
import { RunCounts } from './run-counts.ts'
import type { RunTracing } from './run-tracing.ts'
import { StartKeys } from './start-keys.ts'
import { Workspaces } from './workspaces.ts'

export interface DaemonOptions {
  home: string
  log: ProcessLog
  env?: Environment
  /** The command of this process, as the lock names it. */
  command?: string
}

const ABANDON_MS = 500

export class Daemon {
  readonly home: string
  readonly log: Log
  readonly lock: Lock
  readonly db: Database
  readonly settings: Settings
  /** How many leaf phases are executed at once. */
  readonly slots: number
  readonly engine: Engine
  readonly audit: Audit
  readonly workspaces: Workspaces
  readonly startKeys: StartKeys
  /** Searches and other long reads of runs. */
  readonly reads: Reads
  readonly packages: Packages
  /** Where commands run. */
  readonly sandboxes: Sandboxes
  bundles = new Bundles()
  readonly openRuns: OpenRuns
  /** How old the records of this home are. */
  readonly ages: Ages
  /** What accounts are told that is about no run. */
  readonly tells: Tells
  /** What this process has done. */
  readonly counts: RunCounts
  /** The changes of synced runs that have to be sent to the hub. */
  readonly outbox: SyncOutbox
  /** Created with the database, and the same after restarts. */
  readonly instanceId: string
  /** Encrypts with the key of this home. */
  readonly seal: Seal
  readonly hookSecrets: HookSecrets
  /** The address where it listens, or null while it does not. */
  address: string | null = null
  /** Ends this process once what runs has ended, see `Drain`; null in a process that does not serve. */
  drain: ((mostMs: number | null) => Drain) | null = null
  /** What this process exports, if anything. */
  readonly telemetry: Telemetry | null
  /** The link to the hub, when there is one. */
  remote: Remote | null = null
  /** Reports the runs of a command without a daemon to the hub, when the home is enrolled. */
  reporter: (Pick<Remote, 'lists'> & { finish(): Promise<void> }) | null = null
  /** The last line of the log that is an error. */
  #lastError: Line | null = null
  readonly #mask: Mask
  readonly #agents: AgentVersions
  /** The spans of runs, if they are exported. */
  #tracing: RunTracing | null = null
  /** The write-ahead log is being given its full length, for which no commit waits. */
  #growing: Promise<void> | null = null

  /** Takes the lock and opens everything. Throws `conflict` when another process holds the home. */
  static async open(options: DaemonOptions): Promise<Daemon> {
    const { home, env = process.env, command = 'serve' } = options
    makeHome(home)
    const lock = takeLock(home, command)
    let telemetry: Telemetry | null = null
    try {
      const file = databaseFile(home)
      const [migrations, settings] = await Promise.all([
        readMigrations(MIGRATIONS),
        openSettings(home, { log: options.log, env, processes: processesFolder(home) }),
        endLeftGroups(processesFolder(home), options.log),
        makeUnreadable(options.log),
      ])
      // The schemas of these agents say which settings are secrets. Other agents are loaded when something names them.
      const catalogue = await findAgents({ home, extra: env.CADRE_AGENTS }).load(settings.agents('everywhere'))
      const slots = slotsOf(env)
      const logLimit = logLimitOf(env)
      const counts = new RunCounts(metricsOptions(env))
      settleOf(env, settings)
      telemetry = await openTelemetry(env, 'cadre-daemon', options.log, build)
      const db = openRunDatabase(file, migrations)
      settlePlace(db, home, Date.now())
      const daemon = new Daemon(options, { lock, db, catalogue, settings, slots, logLimit, counts, telemetry, env })
      // A long-running process commits often and gains from a long write-ahead log. A command that runs one team does
      // not.
      if (command === 'serve') daemon.#growing = daemon.#growLog()
      await daemon.sandboxes.endLeft()
      await daemon.#export()
      return daemon
    } catch (error) {
      await telemetry?.close()
      lock.release()
      throw error
    }
  }

  private constructor(
    options: DaemonOptions,
    parts: {
      lock: Lock
      db: Database
      catalogue: Catalogue
      settings: Settings
      slots: number
      logLimit: number
      counts: RunCounts
      telemetry: Telemetry | null
      env: Environment
    },
  ) {
    const { home } = options
    const { lock, db, catalogue, settings, slots, logLimit, counts, env } = parts
    this.home = home
    this.telemetry = parts.telemetry
    this.lock = lock
    this.db = db
    this.settings = settings
    this.slots = slots
    this.#agents = new AgentVersions(
      catalogue,
      () => this.openRuns.roots,
      () => this.#agentsChanged(),
    )
    this.seal = new Seal(home)
    this.hookSecrets = new HookSecrets(db, this.seal, () => this.#mask.learn())
    const secretsOf = () => [...ownSecrets(home, env), ...settings.secrets(this.catalogue), ...this.hookSecrets.known()]
    this.#mask = new Mask(secretsOf, options.log)
    settings.onSecrets(() => this.#mask.learn())
    options.log.follow(line => {
      if (line.level === 'error') this.#lastError = line
    })
    const log = this.#mask.log()
    this.log = log
    this.audit = new Audit(db, log)
    this.workspaces = new Workspaces(db)
    this.startKeys = new StartKeys(db)
    this.packages = new Packages(home, { trust: () => settings.packageTrust(), log })
    const secrets = new RootSecrets(home)
    const store = new Store(db)
    this.sandboxes = new Sandboxes(home, settings, keepsNone(store))
    const mode = settings.value('sync') === 'status' ? 'status' : 'full'
    this.outbox = new SyncOutbox({
      store,
      commit: apply => this.engine.commit(apply),
      mode,
      lived: () => this.engine.lived,
      stateDir: runId => runFolder(home, runId),
      bundle: id => this.engine.bundle(id),
      log,
    })
    this.counts = counts
    this.engine = new Engine({
      home,
      db,
      secrets,
      log,
      slots,
      logLimit,
      settle: () => settleOf(env, settings),
      onFail: () => settings.onFail(),
      host: engineHost({
        ...{ home, settings, secrets, mask: this.#mask, sandboxes: this.sandboxes },
        findOwnSecrets: onOwnSecrets(home, () => this.#mask.learn()),
        catalogueOf: rootId => this.#agents.of(rootId),
        tracing: () => this.#tracing,
        pageOf: runId => this.#pageOf(runId),
        leadsTo: review => leadsTo(this, review),
      }),
      outbox: this.outbox,
      meter: this.counts,
    })
    const files = { database: databaseFile(home), index: searchFile(home) }
    this.reads = new Reads({ db, ...files, log, isBusy: () => this.engine.load.slots > 0 })
    this.openRuns = new OpenRuns(home, this.engine)
    const { commit } = this.engine
    this.ages = new Ages({ db, facts: store.facts, commit, lived: () => this.engine.lived })
    this.tells = new Tells({
      ...{ home, db, settings, log, commit, mask: this.#mask, lived: () => this.engine.lived },
      catalogue: () => this.catalogue,
    })
    this.instanceId = this.engine.store.facts.once('instance', () => crypto.randomUUID())
  }

  /** How this home was found to be a copy, and how many of its runs wait for a person; null for one that never was. */
  get copied(): (Copied & { runs: number }) | null {
    return copiedOf(this.engine.store)
  }

  async #export(): Promise<void> {
    if (!this.telemetry) return
    this.telemetry.describe({ 'service.instance.id': this.instanceId })
    const mask: Daemon['mask'] = value => this.mask(value)
    this.telemetry.exportLines(mask)
    const { tracer } = this.telemetry
    if (!tracer) return
    const { RunTracing } = await import('./run-tracing.ts')
    this.#tracing = new RunTracing({ tracer, engine: this.engine, mask, pageOf: runId => this.#pageOf(runId) })
  }

  async #growLog(): Promise<void> {
    try {
      await growLog(this.db, databaseFile(this.home))
    } catch (error) {
      this.log.warn('the log of the database stays short, and commits take longer', { error: messageOf(error) })
    }
  }

  #pageOf(runId: string): string | null {
    return this.address && `${pageAddress(this.address)}/#/runs/${runId}`
  }

  /** What the last error in the log said since the start; null where there was none. */
  get lastError(): { at: number; text: MaskedText } | null {
    if (!this.#lastError) return null
    const { at, event, fields } = this.#lastError
    const why = typeof fields.error === 'string' ? `: ${fields.error}` : ''
    return { at, text: this.#mask.redactor([]).text(event + why) }
  }

  /** Whether runs of this team (`@scope/name`) are reported to the hub. */
  lists(team: string): boolean {
    return (this.remote ?? this.reporter)?.lists(team) ?? false
  }

  /** Why nothing begins here now, or null. */
  get halted(): string | null {
    return this.engine.isDraining ? 'the daemon drains' : this.engine.load.stalled
  }

  /** Why this daemon cannot start runs now, or null. Throws when the database does not answer. */
  trouble(): string | null {
    versionOf(this.db)
    return this.halted
  }

  /** `value` without the secrets that this daemon knows. */
  mask<T extends Json>(value: T): Masked<T> {
    return this.#mask.redactor([]).json(value)
  }

  /** Refuses a value that must not be stored, such as a session token as `hub.api_key`. The link also asks the hub. */
  checkSetting: (key: string, value: Json) => Promise<void> = async (key, value) => {
    if (key === 'hub.api_key') refuseSessionForm(value)
  }

  /**
   * Reads settings.yml and everything that it refers to again. When this fails, the error is logged and nothing
   * changes.
   */
  async reloadSettings(): Promise<void> {
    try {
      await this.catalogue.load()
      await this.settings.reload()
      this.reportUnknownSettings()
      this.log.info('settings were read again')
    } catch (error) {
      this.log.error('the settings could not be read again', { error: messageOf(error) })
    }
  }

  /** Logs the keys of settings.yml that nothing reads. */
  reportUnknownSettings(): void {
    for (const { message } of this.settings.unknown(this.catalogue)) this.log.warn('unknown setting', { message })
  }

  /** The agents as they were when somebody last called `renewAgents`. */
  get catalogue(): Catalogue {
    return this.#agents.newest
  }

  /** Looks for agents that were added, changed or removed. */
  renewAgents(): Promise<void> {
    return this.#agents.renew()
  }

  #agentsChanged(): void {
    // Teams were checked against the schemas of the agents.
    this.bundles = new Bundles()
    this.#mask.learn()
    this.log.info('agents were read again')
    this.reportSkippedAgents()
  }

  /** Logs the files in the folders of agents that are not agents. */
  reportSkippedAgents(): void {
    for (const { file, reason } of this.catalogue.skipped) this.log.warn('agent skipped', { file, reason })
  }

  /** Interrupts the runs, which the next start continues, and releases the home. */
  async close(): Promise<void> {
    // What comes of it is recorded by the engine.
    await this.tells.stop()
    const stopped = Promise.all([this.remote?.stop(), this.engine.stop(), this.reads.close()])
    // The engine is stopping by now, so no phase fails because its command is terminated.
    this.settings.close()
    await stopped
    await this.#growing
    this.audit.close()
    this.db.close()
    await this.telemetry?.close()
    this.lock.release()
  }

  /** Closes after a failed start. Nothing runs yet, and writes that wait for a full disk are not waited for. */
  async abandon(): Promise<void> {
    await Promise.race([this.close(), Bun.sleep(ABANDON_MS)])
  }
}
