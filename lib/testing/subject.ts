// An agent under test: loaded as the daemon loads it, given settings that were read from a settings.yml, and called as
// the engine calls it, in folders of its own.

import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, relative } from 'node:path'
import type { AgentResult, NotifyEvent } from '../agent/agent-context.ts'
import { load } from '../agent/catalogue.ts'
import type { Agent, Diagnosis, Handler } from '../agent/define.ts'
import { identityAmong } from '../agent/identity.ts'
import type { Detail } from '../error.ts'
import type { JsonObject } from '../json.ts'
import { problems } from '../schema/schema.ts'
import { createRedactor, type KnownSecret } from '../secrets/redact.ts'
import { openSettings, type Settings } from '../settings/settings.ts'
import { callContext } from './call-context.ts'
import { asDeclared } from './declared-data.ts'
import type { Vendor } from './fake-vendor.ts'

/**
 * What may be said of one call of an agent.
 * @example await stock.call(vendor, 'put_item', { name: 'item', ref: '2', file: 'item.md' }, { files: { 'item.md': 'two' } })
 */
export interface CallOptions {
  /** Files of the workspace, by path. */
  files?: Record<string, string>
  /** Makes of the workspace what files alone do not: a clone of a repository. */
  prepare?(workspace: string): unknown
  signal?: AbortSignal
  /** Settings to use instead of those at the vendor. */
  settings?: JsonObject
  /** The idempotency key; the same in all calls by default. */
  key?: string
  /** The event of a call of `notify`. */
  event?: NotifyEvent
  /** Addresses and names that may be reached in addition to those in the settings and in the entry's `url`. */
  allow?: readonly string[]
}

/**
 * What a call gave.
 * @example expect((await stock.call(vendor, 'get_item', { name: 'a', ref: '1' })).files).toEqual({ a: 'first' })
 */
export interface CallResult extends AgentResult {
  /** What was written, by name. */
  files: Record<string, string>
  /** What was logged, each line with its fields as JSON. */
  lines: string[]
}

/** One call that is ready to start. None of its output is masked. */
export interface Call {
  run(): Promise<AgentResult>
  /** Masks a text as the engine would. */
  mask(text: string): string
  /** Null when the handler has none. */
  find: (() => Promise<AgentResult | null>) | null
  files(): Record<string, string>
  workspace: string
  lines: string[]
}

/** Written as a method, so that a subject of any vendor can be one of a `FakeVendor` once its vendor is known to be one. */
interface Settling<V> {
  settings(vendor: V): JsonObject
}

export class Subject<V extends Vendor> {
  readonly agent: Agent
  /** The name that teams use for it. */
  readonly name: string
  readonly #test: Settling<V>
  readonly #folders: string[] = []
  /** What the vendors know entries by. */
  readonly #identities = new WeakMap<Vendor, Map<string, string>>()

  private constructor(agent: Agent, name: string, test: Settling<V>) {
    this.agent = agent
    this.name = name
    this.#test = test
  }

  /** Loads the agent. Throws the reason for which the daemon would skip the file. */
  static async load<V extends Vendor>(file: string, settings: Settling<V>['settings']): Promise<Subject<V>> {
    const loaded = await load(file)
    if ('reason' in loaded) throw new Error(loaded.reason)
    return new Subject(loaded.agent, basename(file, '.ts'), { settings })
  }

  handler(call: string): Handler {
    const { actions, source, target, phase, notify } = this.agent
    const handlers: Record<string, Handler | undefined> = { ...actions, source, target, phase, notify }
    const handler = handlers[call]
    if (!handler) throw new Error(`${this.name} has no ${call}; it has ${this.calls().join(', ')}`)
    return handler
  }

  /** Its actions, or `source`, `target` and `phase`; and `notify`. */
  calls(): string[] {
    const direct = (['source', 'target', 'phase', 'notify'] as const).filter(each => this.agent[each])
    return [...Object.keys(this.agent.actions ?? {}), ...direct]
  }

  settingsAt(vendor: V): JsonObject {
    return this.#test.settings(vendor)
  }

  /** The problems of the settings, in the words of the daemon. */
  async settingProblems(given: JsonObject): Promise<Detail[]> {
    return this.#opened(given, settings => settings.problems(this.name, this.agent))
  }

  /** Every secret value of these settings, by the key of the setting. */
  async secretsOf(given: JsonObject): Promise<KnownSecret[]> {
    return this.#opened(given, settings => settings.secrets({ get: () => this.agent }))
  }

  /**
   * Prepares a call, in a new workspace or in that of an earlier call. Throws for an entry that the schema refuses, as a
   * run does.
   */
  async prepareCall(
    vendor: V,
    call: string,
    entry: JsonObject,
    { workspace: earlier, ...options }: CallOptions & { workspace?: string } = {},
  ): Promise<Call> {
    const handler = this.handler(call)
    const wrong = problems(handler.entry, entry).map(({ path, message }) => `${path || 'entry'}: ${message}`)
    if (wrong.length > 0) throw new Error(`[${this.name}.${call}] ${wrong.join('; ')}`)
    const { files = {}, allow = [], event, key, signal, prepare } = options
    const [stateDir, workspace] = [this.#folder(), earlier ?? this.#folder()]
    if (!earlier) await prepare?.(workspace)
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(workspace, path)), { recursive: true })
      writeFileSync(join(workspace, path), text)
    }
    const redactor = createRedactor()
    const lines: string[] = []
    const identities = this.#identities.get(vendor) ?? new Map<string, string>()
    this.#identities.set(vendor, identities)
    const { context } = callContext({
      ...(await this.#bound(vendor, options.settings, redactor)),
      ...{ stateDir, workspace },
      log: (message, fields) => lines.push(fields ? `${message} ${JSON.stringify(fields)}` : message),
      ...(this.agent.actions?.[call] && { action: call }),
      effect: typeof handler.effect === 'function' ? handler.effect(entry) : handler.effect,
      network: { allow, literalOrigins: typeof entry.url === 'string' ? [new URL(entry.url).origin] : [] },
      ...(key !== undefined && { key }),
      identity: identityAmong(identities, `${call} ${key}`),
      ...(signal && { signal }),
      ...(event && { event }),
    })
    const { find } = handler
    return {
      run: async () => asDeclared(handler, await handler.run(entry, context)),
      mask: redactor.text,
      find: find ? async () => asDeclared(handler, await find(entry, context)) : null,
      files: () => filesIn(join(stateDir, 'files', 'phase')),
      lines,
      workspace,
    }
  }

  async call(vendor: V, call: string, entry: JsonObject, options?: CallOptions): Promise<CallResult> {
    const { run, files, lines } = await this.prepareCall(vendor, call, entry, options)
    return { ...(await run()), files: files(), lines }
  }

  async doctor(vendor: V, settings?: JsonObject): Promise<Diagnosis> {
    const folders = { stateDir: this.#folder(), workspace: this.#folder() }
    const { context } = callContext({
      ...(await this.#bound(vendor, settings)),
      ...folders,
      network: { allow: [], literalOrigins: [] },
    })
    if (!this.agent.doctor) throw new Error(`${this.name} has no doctor`)
    return this.agent.doctor(context)
  }

  removeFolders(): void {
    for (const path of this.#folders.splice(0)) rmSync(path, { recursive: true, force: true })
  }

  /** Reads and checks settings for a context. Throws for settings that the daemon would refuse. */
  async #bound(vendor: V, given = this.#test.settings(vendor), redactor = createRedactor()) {
    return this.#opened(given, async settings => {
      const resolved = await settings.of(this.name, this.agent)
      for (const each of settings.secrets({ get: () => this.agent })) redactor.add(each)
      return { agent: this.name, settings: resolved, redactor }
    })
  }

  async #opened<T>(given: JsonObject, use: (settings: Settings) => T | Promise<T>): Promise<T> {
    const home = this.#folder()
    // YAML is a superset of JSON.
    writeFileSync(join(home, 'settings.yml'), JSON.stringify({ agents: { [this.name]: given } }), { mode: 0o600 })
    const settings = await openSettings(home, { log: { warn() {} } })
    try {
      return await use(settings)
    } finally {
      settings.close()
    }
  }

  #folder(): string {
    const path = realpathSync(mkdtempSync(join(tmpdir(), 'cadre-testing-')))
    this.#folders.push(path)
    return path
  }
}

function filesIn(folder: string): Record<string, string> {
  if (!existsSync(folder)) return {}
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile())
  const paths = entries.map(({ parentPath, name }) => join(parentPath, name)).sort()
  return Object.fromEntries(paths.map(path => [relative(folder, path), readFileSync(path, 'utf8')]))
}
