// The settings of a home, `<home>/settings.yml`, and the secrets among them. Other folders import only this file of
// lib/settings.
//
// The file and its references (`${env:…}` …) are read at the start, after each `set` and on SIGHUP; a manual change
// takes effect then. A `${cmd:…}` runs only when its value is needed. The methods that may run one (`prepare`, `of`,
// `secret`) are therefore asynchronous, and all others return what is already known. Each secret value is passed to the
// listener of `onSecrets` before anyone receives it, so that the values that agents use and the values that are masked
// are always the same.

import { join } from 'node:path'
import type { Catalogue } from '../agent/catalogue.ts'
import { CadreError, type Detail } from '../error.ts'
import { writeDurable } from '../files/durable-file.ts'
import { fromHome } from '../files/home-path.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import type { Log } from '../log/log.ts'
import { Recent } from '../recent.ts'
import { looksSecret, soundsSecret } from '../secrets/environment-secrets.ts'
import type { KnownSecret } from '../secrets/redact.ts'
import { credentialsIn, withoutCredentials } from '../secrets/secret-forms.ts'
import { agentProblems } from './agent-problems.ts'
import { outputOf } from './command.ts'
import { environmentNames, secretVariables, variablesOf } from './command-environment.ts'
import { environmentsIn, placeOf, placesIn, reviewersOf, settingsOf, whyNoEnvironment } from './environments.ts'
import { change, readDocument, toObject } from './file.ts'
import { checkKey, checkValue, faults, noAgent, pathOf } from './key.ts'
import { labelsIn } from './labels.ts'
import { placeInEntry } from './named.ts'
import { type Account, accountOf, accountsIn, whyMute, whyNoChannel } from './on-fail.ts'
import { commandsIn, isReference, Lookups, type Resolved, type Sources } from './references.ts'
import { type SandboxChoices, sandboxChoices } from './sandbox.ts'
import { type CheckedSettings, openScope, ownSettings, refusalOf, type Scope, type View } from './scope.ts'
import { inEnvironment, leavesOf, secretKind, valueAt, withValue } from './tree.ts'
import { trustIn } from './trust.ts'
import { unknownKeys } from './unknown-keys.ts'

export { noAgent } from './key.ts'
export type { Borrower } from './lend.ts'
export { isEntryText } from './named.ts'
export { type Account, accountOf } from './on-fail.ts'
export { mayHaveNetwork, type SandboxChoices, type SandboxKind } from './sandbox.ts'
export type { Scope, SecretUser } from './scope.ts'
export { type SettingNames, settingNames } from './setting-names.ts'
export { fieldsOf, type JsonSchema, leavesOf } from './tree.ts'
export { trustsName, whyUntrusted } from './trust.ts'

type Agents = Pick<Catalogue, 'get' | 'names'> & Partial<Pick<Catalogue, 'skipped'>>
type Known = Pick<Catalogue, 'get'>

export interface Settings extends Scope {
  /**
   * What runs of an environment have; null gives the plain settings. Throws `invalid_request` when the file has no such
   * environment, or one whose form is wrong, and so do later calls once that is so.
   */
  in(environment: string | null): Scope
  /** The environments that runs can have. */
  environments(): string[]
  /** Why runs cannot have the environment; null if they can. */
  whyNoEnvironment(name: string): string | null
  /** Who may approve a run in the environment before it begins; null when nobody is asked. */
  reviewersIn(environment: string | null): string[] | null
  /** The agents that have settings in the file, with their accounts: plain ones, or those of any environment, too. */
  agents(which?: 'everywhere'): string[]
  /** What agents may reach besides public addresses, and whether a proxy decides where other names lead. */
  network(): { allow: string[]; proxyResolves: boolean }
  /** The labels that runs may require of this daemon. */
  labels(): Record<string, string>
  /** `packages.trust` as it stands in the file, whatever it is; undefined when it is not set. */
  packageTrust(): Json | undefined
  /** Where commands run. */
  sandbox(): SandboxChoices
  /** Every account at which people can be told something, as `agent:channel`. */
  accounts(agents: Known): string[]
  /** Who is told of what fails and has no listener. */
  onFail(): Account[]
  /**
   * One line for each account of `notify.on_fail` that cannot be used. A command that has not run counts as a value.
   * `names`: only agents and channels are judged, because this process may not see what the daemon's settings refer to.
   */
  onFailProblems(agents: Agents, names?: 'names'): Detail[]
  /** What a value that is not stored refers to; the value itself when it is not a reference. Throws `invalid_request`. */
  lookUp(value: Json): Promise<Json>
  /** A value in masked form. Throws `not_found`. */
  get(key: string, agents: Known): { key: string; value: Json }
  /** Every value that is set, masked, in the order of the file. */
  list(agents: Known): { key: string; value: Json }[]
  /** Sections, agents and keys in the file that nothing reads, each with the nearest known name. */
  unknown(agents: Agents): Detail[]
  /**
   * Stores a value; null removes it, even where nothing reads the key. The change is durable when the promise resolves.
   * Throws `invalid_request` for an unknown key or a value that it does not accept. `before` is awaited once the value is
   * accepted, and what it throws keeps the value from being stored.
   */
  set(key: string, value: Json, agents?: Agents, before?: () => unknown): Promise<void>
  /**
   * Every secret value: named secrets, values that an agent's schema marks as secret, values whose name suggests a
   * secret, and values that look like one.
   */
  secrets(agents: Known): KnownSecret[]
  /** Called whenever `secrets` may have changed. */
  onSecrets(listener: () => void): void
  /**
   * To be called when a vendor answered 401. The commands behind this agent's settings and behind named secrets run
   * again at the next use, in whichever environment.
   */
  refused(reference: string): void
  /**
   * Reads the file and all references again. Throws when the file cannot be read, and then keeps the previous settings.
   */
  reload(): Promise<void>
  /** Ends all running commands. */
  close(): void
}

export interface SettingsOptions extends Partial<Pick<Sources, 'env' | 'keychain' | 'now'>> {
  log: Pick<Log, 'warn'>
  /** Maximum number of milliseconds for the command of a `${cmd:…}`; default 10,000. */
  commandTimeout?: number
  /**
   * The folder in which running processes are recorded, so that the next start can end them after a kill. Without it
   * they are not recorded.
   */
  processes?: string
}

const MASK = '***'
const ON_FAIL = 'notify.on_fail'
const COMMAND_MS = 10_000
/** The maximum number of agents and accounts whose checked settings are kept. */
const MOST_CHECKED = 200

/**
 * Opens the settings. A home without the file has no settings. Throws `invalid_request` when the file is not a YAML
 * mapping.
 */
export async function openSettings(home: string, options: SettingsOptions): Promise<Settings> {
  const { log, env = process.env, keychain = systemKeychain, now = () => performance.now() } = options
  const { commandTimeout: timeout = COMMAND_MS, processes = null } = options
  const file = join(home, 'settings.yml')
  const closing = new AbortController()
  const commandNames = () => environmentNames(valueAt(raw, ['references', 'env']))
  const command = (text: string) =>
    outputOf(text, { cwd: home, env, names: commandNames(), processes, timeout, signal: closing.signal })
  const sources: Sources = { env, keychain, command, now }
  const lookups = new Lookups(sources, () => resolve())
  let raw: JsonObject = {}
  let resolved: Resolved = { value: {}, failures: new Map() }
  let inFiles: KnownSecret[] = []
  let writing: Promise<void> = Promise.resolve()
  let listener = () => {}
  /** What was made of the file for an environment, or of the plain settings, since a value changed. */
  const views = new Map<string | null, View>()
  const scopes = new Map<string | null, Scope>()

  const resolve = () => {
    resolved = lookups.resolve(raw, '', 'omit')
    views.clear()
    listener()
  }
  const readFiles = async () => {
    inFiles = await secretsInFiles(resolved.value)
    listener()
  }
  const load = async () => {
    raw = toObject(await readDocument(file, log), file)
    await lookups.read(raw)
    resolve()
    await readFiles()
  }
  await load()

  const makeView = (environment: string | null): View => {
    const checked = new Recent<string, CheckedSettings>(MOST_CHECKED)
    if (environment === null) return { raw, resolved, checked, placeOf: path => path.join('.') }
    const problem = whyNoEnvironment(raw, environment)
    if (problem !== null)
      throw new CadreError('invalid_request', problem, { details: [{ path: '/environment', message: problem }] })
    return viewOfEnvironment(environment, checked)
  }
  const viewOfEnvironment = (name: string, checked: View['checked']): View => {
    const own = settingsOf(raw, name)
    return { raw: own, resolved: lookups.resolve(own, '', 'omit'), checked, placeOf: path => placeOf(raw, name, path) }
  }
  const viewOf = (environment: string | null): View => {
    const known = views.get(environment)
    if (known) return known
    const view = makeView(environment)
    views.set(environment, view)
    return view
  }
  const scopeOf = (environment: string | null): Scope => {
    const scope = scopes.get(environment) ?? openScope(() => viewOf(environment), lookups, readFiles)
    scopes.set(environment, scope)
    return scope
  }
  const plain = scopeOf(null)

  const masked = (value: Json, path: string[], agents: Known): Json => {
    if (typeof value === 'string' && isReference(value)) return value
    if (Array.isArray(value)) return value.map(item => masked(item, path, agents))
    if (!isObject(value)) {
      if (!['open', 'file'].includes(secretKind(path, agents))) return MASK
      return typeof value === 'string' ? withoutCredentials(value) : value
    }
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, masked(item, [...path, key], agents)]))
  }

  const whyUnusable = (account: Account, agents: Agents, names?: 'names'): string | null => {
    const { agent } = account
    const definition = agents.get(agent)
    if (!definition) return noAgent(agent, agents)
    const [problem] = names ? [] : plain.problems(agent, definition)
    const settings = ownSettings(valueAt(names ? raw : resolved.value, ['agents', agent]), definition)
    return whyMute(agent, definition) ?? problem?.message ?? whyNoChannel(account, settings)
  }

  const accountProblems = (accounts: readonly Account[], agents: Agents, names?: 'names'): Detail[] =>
    accounts.flatMap(account => {
      const why = whyUnusable(account, agents, names)
      const name = `${account.agent}:${account.channel}`
      return why === null ? [] : { path: ON_FAIL, message: `${ON_FAIL}: ${name} cannot be used: ${why}` }
    })

  /** Throws when the agent finds fault with the value at `path`, given its other settings. */
  const refuseProblems = (path: readonly string[], value: Json, agents: Agents | undefined) => {
    if (agents && path.join('.') === ON_FAIL) {
      const details = accountProblems(accountsIn(value), agents)
      if (details.length > 0) throw refusalOf(details)
    }
    const { above, below } = inEnvironment(path)
    const [section, reference = '', ...rest] = below
    const definition = section === 'agents' ? agents?.get(reference) : undefined
    if (!definition || value === null) return
    const environment = above[1] ?? null
    const { value: known } = environment === null ? resolved : lookups.resolve(settingsOf(raw, environment), '', 'omit')
    const settings = ownSettings(withValue(valueAt(known, ['agents', reference]), rest, value), definition)
    const wrong = faults(definition.settings, settings).map(({ path }) => path)
    const key = rest.join('.')
    const concerns = (place: string) => place === key || place.startsWith(`${key}.`) || key.startsWith(`${place}.`)
    const details = agentProblems(definition, settings, wrong)
      .filter(({ path }) => concerns(path))
      .map(({ path, message }) => ({ path: [...above, 'agents', reference, path].join('.'), message }))
    if (details.length === 0) return
    const message = details.map(({ path, message }) => `setting ${path} ${message}`).join('; ')
    throw new CadreError('invalid_request', message, { details })
  }

  return {
    ...plain,
    in(environment) {
      viewOf(environment)
      return scopeOf(environment)
    },
    environments: () => environmentsIn(raw).filter(name => whyNoEnvironment(raw, name) === null),
    whyNoEnvironment: name => whyNoEnvironment(raw, name),
    reviewersIn: name => (name === null ? null : reviewersOf(raw, name)),
    agents(which) {
      const places = which ? placesIn(raw) : [[]]
      return [...new Set(places.flatMap(place => Object.keys(valueAt(raw, [...place, 'agents']) ?? {})))]
    },
    network() {
      const allow = valueAt(resolved.value, ['network', 'allow'])
      const proxyResolves = valueAt(resolved.value, ['network', 'proxy_resolves']) === true
      return { allow: Array.isArray(allow) ? allow.map(String) : [], proxyResolves }
    },
    labels: () => labelsIn(resolved.value.labels),
    packageTrust: () => trustIn(raw),
    sandbox: () => sandboxChoices(raw),
    accounts: agents =>
      Object.keys(valueAt(raw, ['agents']) ?? {}).flatMap(agent => {
        const definition = agents.get(agent)
        if (!definition || whyMute(agent, definition) || plain.problems(agent, definition).length > 0) return []
        const channels = valueAt(ownSettings(valueAt(resolved.value, ['agents', agent]), definition), ['channels'])
        const names = isObject(channels) ? Object.keys(channels) : []
        return names.map(name => `${agent}:${name}`).filter(name => accountOf(name) !== null)
      }),
    onFail: () => accountsIn(valueAt(resolved.value, ON_FAIL.split('.'))),
    onFailProblems: (agents, names) =>
      accountProblems(accountsIn(valueAt(resolved.value, ON_FAIL.split('.'))), agents, names),
    async lookUp(value) {
      const once = new Lookups(sources, () => {})
      await once.read({ value })
      await once.ask(commandsIn(value))
      const found = once.resolve({ value }, '', 'omit')
      const [failure] = found.failures.values()
      if (failure !== undefined) throw new CadreError('invalid_request', failure)
      return found.value.value!
    },
    get(key, agents) {
      const path = key.split('.')
      // A secret without `teams` is stored as a plain value.
      const { above, below } = inEnvironment(path)
      const isValue = below[0] === 'secrets' && below[2] === 'value'
      const plain = isValue ? valueAt(raw, [...above, ...below.slice(0, 2)]) : undefined
      const value = plain === undefined || isObject(plain) ? valueAt(raw, path) : plain
      if (value === undefined) throw new CadreError('not_found', `the setting ${key} is not set`)
      return { key, value: masked(value, path, agents) }
    },
    list: agents =>
      leavesOf(raw).map(({ path, value }) => ({ key: path.join('.'), value: masked(value, path, agents) })),
    unknown: agents => unknownKeys(raw, agents),
    set(key, value, agents, before) {
      const path = value === null ? pathOf(key) : checkKey(key, agents)
      const stored = value === null ? null : checkValue(path, value, agents)
      refuseProblems(path, stored, agents)
      const work = async () => {
        const place = placeInEntry(toObject(await readDocument(file, log), file), path, stored)
        const document = await readDocument(file, log)
        change(document, place.path, place.value)
        await before?.()
        await writeDurable(file, document.toString())
        await load()
      }
      const done = writing.then(work)
      writing = done.catch(() => {})
      return done
    },
    secrets: agents => [
      ...inFiles,
      ...secretVariables(variablesOf(commandNames(), env)),
      ...leavesOf(resolved.value).flatMap(({ path, value }) => {
        const kind = secretKind(path, agents)
        const isSecret = (item: Json) =>
          kind === 'value' || (kind === 'unknown' && looksSecret(item)) || credentialsIn(String(item)).length > 0
        const items = [value].flat().filter(isSecret)
        return items.map(item => ({ name: path.join('.'), value: String(item ?? '') }))
      }),
    ],
    onSecrets(notify) {
      listener = notify
    },
    refused(reference) {
      const parts = placesIn(raw).flatMap(place => [
        valueAt(raw, [...place, 'agents', reference]),
        valueAt(raw, [...place, 'secrets']),
      ])
      lookups.expire(parts.flatMap(part => commandsIn(part ?? null)))
    },
    async reload() {
      await load()
      lookups.expire(commandsIn(raw))
    },
    close: () => closing.abort(),
  }
}

/** The secrets in credentials files that settings name: values of the JSON document whose names suggest a secret. */
async function secretsInFiles(settings: JsonObject): Promise<KnownSecret[]> {
  const files = leavesOf(settings).filter(({ path, value }) => typeof value === 'string' && /_file$/.test(path.at(-1)!))
  const found = files.map(async ({ path, value }) => {
    try {
      const content: unknown = await Bun.file(fromHome(value as string)).json()
      return leavesOf(isObject(content) ? (content as JsonObject) : {})
        .filter(leaf => typeof leaf.value === 'string' && soundsSecret(leaf.path.at(-1)!))
        .map(leaf => ({ name: `${leaf.path.at(-1)} in the file of ${path.join('.')}`, value: leaf.value as string }))
    } catch {
      // The agent that needs the file reports the problem.
      return []
    }
  })
  return (await Promise.all(found)).flat()
}

async function systemKeychain(name: string): Promise<string | null> {
  return Bun.secrets.get({ service: 'cadre', name })
}
