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
import type { AgentDefinition } from '../agent/define.ts'
import { CadreError, type Detail } from '../error.ts'
import { writeDurable } from '../files/durable-file.ts'
import { fromHome } from '../files/home-path.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import type { Log } from '../log/log.ts'
import { commandLine } from '../program/called-as.ts'
import { Recent } from '../recent.ts'
import type { KnownSecret } from '../secrets/redact.ts'
import { credentialsIn, withoutCredentials } from '../secrets/secret-forms.ts'
import { unlessAborted } from '../wait.ts'
import { agentProblems } from './agent-problems.ts'
import { outputOf } from './command.ts'
import { environmentNames, secretVariables, variablesOf } from './command-environment.ts'
import { change, readDocument, toObject } from './file.ts'
import { checkKey, checkValue, faults, formOf, keyProblem, noAgent, pathOf, unknownKeys } from './key.ts'
import { labelsIn } from './labels.ts'
import { placeInEntry, type SecretReader, secretText, whyNoSecret } from './named.ts'
import { type Account, accountOf, accountsIn, whyMute, whyNoChannel } from './on-fail.ts'
import { commandsIn, isReference, Lookups, type Resolved, type Sources } from './references.ts'
import { type SandboxChoices, sandboxChoices } from './sandbox.ts'
import { leavesOf, looksSecret, secretKind, soundsSecret, valueAt, withValue } from './tree.ts'
import { typed } from './typed.ts'

export { noAgent } from './key.ts'
export { isEntryText, type SecretReader } from './named.ts'
export { type Account, accountOf } from './on-fail.ts'
export { mayHaveNetwork, type SandboxChoices, type SandboxKind } from './sandbox.ts'
export { fieldsOf, type JsonSchema, leavesOf, looksSecret, soundsSecret } from './tree.ts'
export { trustsName, whyUntrusted } from './trust.ts'

type Agents = Pick<Catalogue, 'get' | 'names'> & Partial<Pick<Catalogue, 'skipped'>>
type Known = Pick<Catalogue, 'get'>

/** A team and the names of the secrets that it uses. */
export interface SecretUser extends SecretReader {
  secrets: readonly string[]
}

export interface Settings {
  /** Runs the commands at or below these keys whose output is no longer valid, all at once. Never throws. */
  prepare(keys: readonly string[]): Promise<void>
  /**
   * The resolved settings of `issues` or `issues@eu`, with defaults. Throws `invalid_request` with all `problems`.
   * `signal` ends the wait with its reason, but the command continues for other callers.
   */
  of(reference: string, definition: AgentDefinition, signal?: AbortSignal): Promise<JsonObject>
  /**
   * What is missing or wrong in these settings. Each message says how to correct it. A command that has not run yet
   * counts as a value, so call `prepare` first.
   */
  problems(reference: string, definition: AgentDefinition): Detail[]
  /**
   * The text of a named secret. Throws `invalid_request` when it is not set, cannot be resolved, or may not be read by
   * this team.
   */
  secret(name: string, team: SecretReader, signal?: AbortSignal): Promise<string>
  /**
   * `prepare` for the secrets that these teams use and may read. A secret that a team may not read does not run a
   * command. Never throws.
   */
  prepareSecrets(teams: readonly SecretUser[]): Promise<void>
  /** One line for each secret that a team uses but cannot read. A command that has not run yet counts as a value. */
  missingSecrets(teams: readonly SecretUser[]): Detail[]
  /** The named secrets whose references fail. */
  brokenSecrets(): Detail[]
  /** The agents that have settings in the file, with their accounts. */
  agents(): string[]
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
  /**
   * A resolved value, unmasked. Undefined when it is not set, cannot be resolved, or is a command that has not run yet.
   */
  value(key: string): Json | undefined
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
   * again at the next use.
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

/** The checked settings of an agent, which are valid until a value changes. */
interface CheckedSettings {
  definition: AgentDefinition
  details: Detail[]
  /** The settings as JSON, because each call of an agent gets a copy of its own. */
  text: string
}

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
  /** By reference: settings that need no command, of agents without a `check` of their own. */
  const checked = new Recent<string, CheckedSettings>(MOST_CHECKED)

  const resolve = () => {
    resolved = lookups.resolve(raw, '', 'omit')
    checked.clear()
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

  const commandsBelow = (keys: readonly string[]) =>
    keys.flatMap(key => commandsIn(valueAt(raw, key.split('.')) ?? null))

  const prepare = async (keys: readonly string[]) => {
    const commands = commandsBelow(keys)
    if (commands.length > 0 && (await lookups.ask(commands))) await readFiles()
  }

  const own = (settings: Json | undefined, definition: AgentDefinition) =>
    typed(settings ?? {}, definition.settings) as JsonObject

  const knownOf = (reference: string, definition: AgentDefinition): CheckedSettings | null => {
    const known = checked.get(reference)
    return known?.definition === definition ? known : null
  }

  const checkAgent = (reference: string, definition: AgentDefinition): CheckedSettings => {
    const known = knownOf(reference, definition)
    if (known) return known
    const details = problems(reference, definition)
    const text = JSON.stringify(own(valueAt(resolved.value, ['agents', reference]), definition))
    const found = { definition, details, text }
    // An agent's own `check` runs each time, because it may look at files, and commands give a new value each hour.
    const mayChange = definition.check || definition.missing || commandsBelow([`agents.${reference}`]).length > 0
    if (!mayChange) checked.set(reference, found)
    return found
  }

  const problems = (reference: string, definition: AgentDefinition): Detail[] => {
    const prefix = `agents.${reference}`
    const known = lookups.resolve(valueAt(raw, ['agents', reference]) ?? {}, prefix, 'keep')
    const settings = own(known.value, definition)
    const found = new Map([...known.failures].map(([key, reason]) => [key, `${key}: ${reason}`]))
    const wrong = faults(definition.settings, settings)
    for (const { path, kind, message } of wrong) {
      const key = prefix + path.replaceAll('/', '.')
      const below = path.split('/').slice(1)
      const isUnset = kind === 'missing' || valueAt(settings, below) === null
      const set = `set it with: ${commandLine('settings', 'set', formOf(definition, below, key), '-')}`
      const what =
        kind === 'unknown'
          ? `is not known: ${keyProblem(key.split('.'), { get: () => definition, names: () => [] })}`
          : `${isUnset ? 'is not set' : message}; ${set}`
      if (!found.has(key)) found.set(key, `${key} ${what}`)
    }
    const places = wrong.map(({ path }) => path)
    for (const { path, message } of agentProblems(definition, settings, places)) {
      const key = `${prefix}.${path}`
      if (!found.has(key)) found.set(key, `${key} ${message}`)
    }
    if (found.size === 0) {
      for (const name of definition.missing?.(settings) ?? []) {
        const key = `${prefix}.${name}`
        found.set(key, `${key} is not set; set it with: ${commandLine('settings', 'set', key, '-')}`)
      }
    }
    return [...found].map(([path, message]) => ({ path, message }))
  }

  /** Why the team cannot read the secret, as far as that is known. */
  const secretProblem = (name: string, team: SecretReader): Detail | null => {
    const refusal = whyNoSecret(raw, name, team)
    return refusal === null ? failureBelow(`secrets.${name}`) : { path: `secrets.${name}`, message: refusal }
  }

  const failureBelow = (key: string): Detail | null => {
    const found = [...resolved.failures].find(([path]) => path === key || path.startsWith(`${key}.`))
    return found ? { path: key, message: `${key}: ${found[1]}` } : null
  }

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
    const [problem] = names ? [] : problems(agent, definition)
    const settings = own(valueAt(names ? raw : resolved.value, ['agents', agent]), definition)
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
    const [section, reference = '', ...rest] = path
    const definition = section === 'agents' ? agents?.get(reference) : undefined
    if (!definition || value === null) return
    const settings = own(withValue(valueAt(resolved.value, ['agents', reference]), rest, value), definition)
    const wrong = faults(definition.settings, settings).map(({ path }) => path)
    const key = rest.join('.')
    const concerns = (place: string) => place === key || place.startsWith(`${key}.`) || key.startsWith(`${place}.`)
    const details = agentProblems(definition, settings, wrong)
      .filter(({ path }) => concerns(path))
      .map(({ path, message }) => ({ path: `agents.${reference}.${path}`, message }))
    if (details.length === 0) return
    const message = details.map(({ path, message }) => `setting ${path} ${message}`).join('; ')
    throw new CadreError('invalid_request', message, { details })
  }

  return {
    prepare,
    async of(reference, definition, signal) {
      signal?.throwIfAborted()
      const known = knownOf(reference, definition)
      if (!known) await unlessAborted(prepare([`agents.${reference}`]), signal)
      const { details, text } = known ?? checkAgent(reference, definition)
      if (details.length === 0) return JSON.parse(text) as JsonObject
      throw refusalOf(details)
    },
    problems: (reference, definition) => checkAgent(reference, definition).details,
    async secret(name, team, signal) {
      const refusal = whyNoSecret(raw, name, team)
      if (refusal === null) await unlessAborted(prepare([`secrets.${name}`]), signal)
      const problem = secretProblem(name, team)
      if (problem) throw refusalOf([problem])
      return secretText(resolved.value, name)!
    },
    prepareSecrets: teams =>
      prepare(
        teams.flatMap(team =>
          team.secrets.filter(name => whyNoSecret(raw, name, team) === null).map(name => `secrets.${name}`),
        ),
      ),
    missingSecrets(teams) {
      const found = new Map<string, Detail>()
      for (const team of teams) {
        for (const name of team.secrets) {
          const problem = secretProblem(name, team)
          if (problem) found.set(problem.message, problem)
        }
      }
      return [...found.values()]
    },
    brokenSecrets: () =>
      Object.keys(valueAt(raw, ['secrets']) ?? {}).flatMap(name => failureBelow(`secrets.${name}`) ?? []),
    agents: () => Object.keys(valueAt(raw, ['agents']) ?? {}),
    network() {
      const allow = valueAt(resolved.value, ['network', 'allow'])
      const proxyResolves = valueAt(resolved.value, ['network', 'proxy_resolves']) === true
      return { allow: Array.isArray(allow) ? allow.map(String) : [], proxyResolves }
    },
    labels: () => labelsIn(resolved.value.labels),
    packageTrust() {
      // A list in the wrong place, under a misspelt name, or one that refers to something, must not count as none.
      const section = raw.packages ?? {}
      if (!isObject(section)) return null
      const { sandbox: _, ...rest } = section as JsonObject
      return Object.keys(rest).length === 0 ? undefined : (rest.trust ?? null)
    },
    sandbox: () => sandboxChoices(raw),
    accounts: agents =>
      Object.keys(valueAt(raw, ['agents']) ?? {}).flatMap(agent => {
        const definition = agents.get(agent)
        if (!definition || whyMute(agent, definition) || problems(agent, definition).length > 0) return []
        const channels = valueAt(own(valueAt(resolved.value, ['agents', agent]), definition), ['channels'])
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
    value: key => valueAt(resolved.value, key.split('.')),
    get(key, agents) {
      const path = key.split('.')
      // A secret without `teams` is stored as a plain value.
      const plain = path[0] === 'secrets' && path[2] === 'value' ? valueAt(raw, path.slice(0, 2)) : undefined
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
    refused: reference => lookups.expire(commandsBelow([`agents.${reference}`, 'secrets'])),
    async reload() {
      await load()
      lookups.expire(commandsIn(raw))
    },
    close: () => closing.abort(),
  }
}

function refusalOf(details: Detail[]): CadreError {
  return new CadreError('invalid_request', details.map(({ message }) => message).join('; '), { details })
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
