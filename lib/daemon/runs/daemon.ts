// The daemon: one object that owns a home and connects what is in it: database, agents, settings, secrets and engine.
// `serve` adds HTTP for as long as the process lives, and other commands add it while something runs
// (cli/backend/command-host.ts). Both hold the lock of the home.

import type { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { growLog, openRunDatabase, readMigrations, versionOf } from '../../../db/open.ts'
import { type Catalogue, findAgents } from '../../agent/catalogue.ts'
import { endLeftGroups } from '../../agent/commands/processes.ts'
import { createContext } from '../../agent/context.ts'
import { A_DURATION, parseDuration } from '../../duration.ts'
import { CadreError, messageOf } from '../../error.ts'
import { runFolder } from '../../files/run-id.ts'
import type { Json, JsonObject } from '../../json.ts'
import type { Log } from '../../log/log.ts'
import type { Tracer } from '../../log/trace.ts'
import { openTracer } from '../../log/tracing.ts'
import { commandLine } from '../../program/called-as.ts'
import { Engine, type EngineHost, LOG_LIMIT, RootSecrets, type RunEnvironment, Store } from '../../run/engine.ts'
import type { Masked, MaskedText } from '../../secrets/masked.ts'
import { noAgent, openSettings, type Settings } from '../../settings/settings.ts'
import { parseSize } from '../../size.ts'
import type { Bundle } from '../../team/team.ts'
import { bundleFromJson, literalOrigins, secretReader, teamsOf } from '../../team/team.ts'
import { refuseSessionForm } from '../access/api-key.ts'
import { Mask } from '../access/mask.ts'
import type { Remote } from '../access/remote-credentials.ts'
import { Audit, MIGRATIONS } from '../home/audit.ts'
import { type Copied, copiedOf, settlePlace } from '../home/copied-home.ts'
import { homeIsFull } from '../home/full-disk.ts'
import { databaseFile, makeHome, processesFolder } from '../home/home.ts'
import { type Lock, takeLock } from '../home/lock.ts'
import { ownSecrets, ownSecretsStamp } from '../home/own-secrets.ts'
import { SyncOutbox } from '../link/outbox/outbox.ts'
import { Bundles } from '../packages/bundle-cache.ts'
import { Packages } from '../packages/packages.ts'
import { keepsNone, Sandboxes } from '../packages/sandboxes.ts'
import { makeUnreadable } from '../packages/unreadable.ts'
import type { RunTracing } from './run-tracing.ts'
import { Workspaces } from './workspaces.ts'

const DEFAULT_SLOTS = 64

type Environment = Record<string, string | undefined>

export interface DaemonOptions {
  home: string
  log: Log
  env?: Environment
  /** The command of this process, as the lock names it. */
  command?: string
}

/** How long a start waits for its first write before it reports that the disk is full. */
const FULL_MS = 2_000
const ABANDON_MS = 500
/** How often a running daemon looks whether its home has new credentials. */
const OWN_SECRETS_MS = 100

export class Daemon {
  readonly home: string
  readonly log: Log
  readonly lock: Lock
  readonly db: Database
  /** The agents as they were when somebody last asked with `renewAgents`. */
  catalogue: Catalogue
  readonly settings: Settings
  /** How many leaf phases are executed at once. */
  readonly slots: number
  readonly engine: Engine
  readonly audit: Audit
  readonly workspaces: Workspaces
  readonly packages: Packages
  /** Where commands run. */
  readonly sandboxes: Sandboxes
  bundles = new Bundles()
  /** Root runs that had not ended when this process took the home, and that it does not continue. */
  readonly left = new Set<string>()
  /** The changes of synced runs that have to be sent to the hub. */
  readonly outbox: SyncOutbox
  /** Created with the database, and the same after restarts. */
  readonly instanceId: string
  /** The address where it listens, or null while it does not. */
  address: string | null = null
  /** The link to the hub, when there is one. */
  remote: Remote | null = null
  /** What a command without a daemon tells the hub at its end, when the home is enrolled. */
  reporter: (Pick<Remote, 'lists'> & { finish(): Promise<void> }) | null = null
  readonly #mask: Mask
  /** The credentials of the home that the mask knows, and when to look again. */
  #ownSecrets: string
  #lookAgain = 0
  /** The spans of runs, if they are exported. */
  #tracing: RunTracing | null = null
  /** The catalogues with which top runs began that are under way, where they are not the current one. */
  #begunWith = new Map<string, Catalogue>()
  #renewing: Promise<void> | null = null
  /** The write-ahead log is being given its full length, for which no commit waits. */
  #growing: Promise<void> | null = null

  /** Takes the lock and opens everything. Throws `conflict` when another process holds the home. */
  static async open(options: DaemonOptions): Promise<Daemon> {
    const { home, env = process.env, command = 'serve' } = options
    makeHome(home)
    const lock = takeLock(home, command)
    try {
      const file = databaseFile(home)
      const [migrations, settings] = await Promise.all([
        readMigrations(MIGRATIONS),
        openSettings(home, { log: options.log, env, processes: processesFolder(home) }),
        endLeftGroups(processesFolder(home), options.log),
        makeUnreadable(options.log),
      ])
      // The schemas of these agents say which settings are secrets. Other agents are loaded when something names them.
      const catalogue = await findAgents({ home, extra: env.CADRE_AGENTS }).load(settings.agents())
      const slots = slotsOf(env)
      const logLimit = logLimitOf(env)
      settleOf(env, settings)
      const tracer = await openTracer(env, 'cadre-daemon', options.log)
      const db = openRunDatabase(file, migrations)
      settlePlace(db, home, Date.now())
      const daemon = new Daemon(options, { lock, db, catalogue, settings, slots, logLimit, env })
      // A long-running process commits often and gains from a long write-ahead log. A command that runs one team does
      // not.
      if (command === 'serve') daemon.#growing = daemon.#growLog()
      await daemon.sandboxes.endLeft()
      if (tracer) await daemon.#trace(tracer)
      return daemon
    } catch (error) {
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
      env: Environment
    },
  ) {
    const { home } = options
    const { lock, db, catalogue, settings, slots, logLimit, env } = parts
    this.home = home
    this.lock = lock
    this.db = db
    this.catalogue = catalogue
    this.settings = settings
    this.slots = slots
    this.#mask = new Mask(() => [...ownSecrets(home, env), ...settings.secrets(this.catalogue)], options.log)
    settings.onSecrets(() => this.#mask.learn())
    const log = this.#mask.log()
    this.log = log
    this.audit = new Audit(db, log)
    this.workspaces = new Workspaces(db)
    this.packages = new Packages(home, { trust: () => settings.packageTrust(), log })
    const secrets = new RootSecrets(home)
    this.#ownSecrets = ownSecretsStamp(home)
    const mode = settings.value('sync') === 'status' ? 'status' : 'full'
    this.outbox = new SyncOutbox({
      store: new Store(db),
      commit: apply => this.engine.commit(apply),
      mode,
      stateDir: runId => runFolder(home, runId),
      bundle: id => this.engine.bundle(id),
    })
    this.engine = new Engine({
      home,
      db,
      secrets,
      log,
      slots,
      logLimit,
      settle: () => settleOf(env, settings),
      host: this.#host(secrets),
      outbox: this.outbox,
    })
    this.sandboxes = new Sandboxes(home, settings, keepsNone(this.engine.store))
    this.instanceId = this.engine.store.facts.once('instance', () => crypto.randomUUID())
  }

  /**
   * Continues every run that has not ended, or with `none` no run. The others, and what a copy of a home holds, are
   * `left` until somebody asks for them. Throws `unavailable` when the disk is full.
   */
  async recover({ none = false } = {}): Promise<void> {
    const held = new Set(this.engine.store.copies.held())
    const isWanted = (id: string) => !none && !held.has(id)
    for (const id of this.#openRoots()) if (!isWanted(id)) this.left.add(id)
    const recovered = this.engine.recover(isWanted)
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(() => {
      // A slow start does not mean a full disk: a home with many open runs takes longer than the limit.
      const { stalled } = this.engine.load
      if (stalled) late.reject(homeIsFull(this.home, stalled))
    }, FULL_MS)
    await Promise.race([recovered, late.promise]).finally(() => clearTimeout(timer))
  }

  /** How this home was found to be a copy, and how many of its runs wait for a person; null for one that never was. */
  get copied(): (Copied & { runs: number }) | null {
    return copiedOf(this.engine.store)
  }

  /**
   * Continues the tree of a run that was left. Returns false when the run was not left. What a copy holds is continued
   * only if a person has asked for that run (`isAsked`), and else stays left: throws `invalid_state`.
   */
  async takeUp(runId: string, { isAsked = false } = {}): Promise<boolean> {
    const root = this.engine.store.runs.get(runId)?.root_id
    if (root === undefined || !this.left.has(root)) return false
    const { copies } = this.engine.store
    const isHeld = copies.isHeld(root)
    if (isHeld && !isAsked) throw heldBack(root)
    this.left.delete(root)
    try {
      const released = isHeld && this.engine.commit(() => copies.release(root))
      await Promise.all([released, this.engine.recover(id => id === root)])
    } catch (error) {
      this.left.add(root)
      throw error
    }
    return true
  }

  async #trace(tracer: Tracer): Promise<void> {
    const { RunTracing } = await import('./run-tracing.ts')
    const pageOf = (runId: string) => this.#pageOf(runId)
    this.#tracing = new RunTracing({ tracer, engine: this.engine, mask: value => this.mask(value), pageOf })
  }

  async #growLog(): Promise<void> {
    try {
      await growLog(this.db, databaseFile(this.home))
    } catch (error) {
      this.log.warn('the log of the database stays short, and commits take longer', { error: messageOf(error) })
    }
  }

  #pageOf(runId: string): string | null {
    return this.address && `${this.address}/#/runs/${runId}`
  }

  #openRoots(): string[] {
    return this.db
      .query<{ id: string }, []>('SELECT id FROM runs WHERE parent_id IS NULL AND completed_at IS NULL ORDER BY id')
      .all()
      .map(({ id }) => id)
  }

  /** Whether runs of this team (`@scope/name`) are reported to the hub. */
  lists(team: string): boolean {
    return (this.remote ?? this.reporter)?.lists(team) ?? false
  }

  /** What keeps this daemon from starting runs now, or null. Throws when the database does not answer. */
  trouble(): string | null {
    versionOf(this.db)
    return this.engine.load.stalled
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

  /** Learns what `login` and `keys new` have written to the home, before an agent could read it. */
  #lookForOwnSecrets(): void {
    const now = performance.now()
    if (now < this.#lookAgain) return
    this.#lookAgain = now + OWN_SECRETS_MS
    const stamp = ownSecretsStamp(this.home)
    if (stamp === this.#ownSecrets) return
    this.#ownSecrets = stamp
    this.#mask.learn()
  }

  /**
   * Looks for agents that were added, changed or removed. Runs from now on use them, and runs that are under way keep
   * those that they began with.
   */
  renewAgents(): Promise<void> {
    const renew = async () => {
      const next = this.catalogue.current()
      if (next === this.catalogue) return
      await next.load()
      const kept = this.#openRoots().map(id => [id, this.#begunWith.get(id) ?? this.catalogue] as const)
      this.#begunWith = new Map(kept)
      this.catalogue = next
      // Teams were checked against the schemas of the agents.
      this.bundles = new Bundles()
      this.#mask.learn()
      this.log.info('agents were read again')
      this.reportSkippedAgents()
    }
    // Requests that arrived together share one look at the folders.
    this.#renewing ??= renew().finally(() => {
      setImmediate(() => {
        this.#renewing = null
      })
    })
    return this.#renewing
  }

  /** Logs the files in the folders of agents that are not agents. */
  reportSkippedAgents(): void {
    for (const { file, reason } of this.catalogue.skipped) this.log.warn('agent skipped', { file, reason })
  }

  /** Interrupts what runs, which the next start continues, and releases the home. */
  async close(): Promise<void> {
    const stopped = Promise.all([this.remote?.stop(), this.engine.stop()])
    // The engine is stopping by now, so no phase fails because its command is terminated.
    this.settings.close()
    await stopped
    await this.#tracing?.close()
    await this.#growing
    this.audit.close()
    this.db.close()
    this.lock.release()
  }

  /** Closes after a failed start. Nothing runs yet, and writes that wait for a full disk are not waited for. */
  async abandon(): Promise<void> {
    await Promise.race([this.close(), Bun.sleep(ABANDON_MS)])
  }

  #host(secrets: RootSecrets): EngineHost {
    const { home, settings } = this
    const mask = this.#mask
    return {
      agent: async (reference, signal, rootId) => {
        this.#lookForOwnSecrets()
        const catalogue = this.#begunWith.get(rootId) ?? this.catalogue
        const definition = (await catalogue.load([reference])).get(reference)
        if (!definition) {
          throw new CadreError('invalid_request', noAgent(reference, catalogue))
        }
        return { definition, settings: await settings.of(reference, definition, signal) }
      },
      context: (place, binding, hooks) =>
        createContext({
          agent: binding.agent,
          action: binding.action,
          settings: binding.settings,
          network: {
            ...settings.network(),
            literalOrigins: place.fromPath ? originsOf(place.bundle) : [],
          },
          addresses: () => binding.definition.addresses?.(binding.settings) ?? [],
          redactor: mask.redactor(secrets.values(place.rootId)),
          conceal: value => mask.conceal(value),
          signal: binding.signal,
          log: (text, fields) => place.log(logLine(text, fields)),
          room: place.room,
          stateDir: place.stateDir,
          workspace: place.workspace,
          outside: place.fromPath,
          given: place.given,
          sameTree: place.sameTree,
          processes: processesFolder(home),
          sandbox: needs =>
            this.sandboxes.of(place.team, {
              ...{ workspace: place.workspace, stateDir: place.stateDir, rootDir: place.rootDir },
              ...{ runs: join(home, 'runs'), sameTree: place.sameTree },
              ...place.files(),
              ...needs,
            }),
          get key() {
            return binding.key
          },
          attempt: place.attempt,
          run: { ...place.run, url: this.#pageOf(place.run.id) },
          phase: place.phase,
          effect: binding.effect,
          trace: this.#tracing?.callOf(place.run.id, place.phase.name),
          replied: status => {
            if (status === 401) settings.refused(binding.agent)
          },
          ...hooks,
        }),
      mask: (value, values) => mask.redactor(values).json(value),
      secret: (name, team, signal) => settings.secret(name, team, signal),
      restoreBundle: (_, json) => bundleFromJson(json),
    }
  }
}

function heldBack(root: string): CadreError {
  const way = `resume it first with \`${commandLine('resume', root)}\``
  return new CadreError(
    'invalid_state',
    `run ${root} was unfinished when this home was copied, and may have gone on at the other place: ${way}`,
  )
}

const origins = new WeakMap<Bundle, readonly string[]>()

/**
 * The addresses that the teams of a path name, and that the guard then lets pass for them. Whoever starts a team from a
 * path on this machine is assumed to have read them, but not those of the packages that it uses.
 */
function originsOf(bundle: Bundle): readonly string[] {
  const own = teamsOf(bundle).filter(([key]) => secretReader(bundle, key).fromPath)
  const known = origins.get(bundle) ?? own.flatMap(([, team]) => [...literalOrigins(team)])
  origins.set(bundle, known)
  return known
}

/** exec says which stream of its process a line came from. */
function logLine(text: MaskedText, fields: Masked<JsonObject> = {}): Parameters<RunEnvironment['log']>[0] {
  const { stream, ...rest } = fields
  const printed = (['stdout', 'stderr'] as const).find(each => each === stream)
  if (printed) return { stream: printed, text, fields: rest }
  return { stream: 'log', text, ...(Object.keys(fields).length > 0 && { fields }) }
}

function slotsOf(env: Environment): number {
  const given = env.CADRE_SLOTS
  if (!given) return DEFAULT_SLOTS
  const slots = Number(given)
  if (Number.isInteger(slots) && slots >= 1 && slots <= 10_000) return slots
  throw new CadreError('invalid_request', `CADRE_SLOTS: expected a whole number from 1 to 10000, got ${given}`)
}

/** `CADRE_SETTLE`, or else the setting `settle`, in milliseconds; undefined where each action has its own. */
function settleOf({ CADRE_SETTLE: given }: Environment, settings: Settings): number | undefined {
  const set = settings.value('settle')
  if (!given) return typeof set === 'string' ? (parseDuration(set) ?? undefined) : undefined
  const time = parseDuration(given)
  if (time !== null) return time
  throw new CadreError('invalid_request', `CADRE_SETTLE: expected ${A_DURATION}, got ${given}`)
}

/** `CADRE_LOG_LIMIT`, in bytes. */
function logLimitOf({ CADRE_LOG_LIMIT: given }: Environment): number {
  if (!given) return LOG_LIMIT
  const limit = parseSize(given)
  if (limit !== null && limit > 0) return limit
  throw new CadreError('invalid_request', `CADRE_LOG_LIMIT: expected a size such as 64MiB, got ${given}`)
}
