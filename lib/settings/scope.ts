// The settings of agents and the named secrets as runs have them: the plain ones, or those of an environment. A scope keeps
// no values; it reads the view of the file that is current at each call.

import { type AgentDefinition, LEND } from '../agent/define.ts'
import { CadreError, type Detail } from '../error.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import { commandLine } from '../program/called-as.ts'
import type { Recent } from '../recent.ts'
import { unlessAborted } from '../wait.ts'
import { agentProblems } from './agent-problems.ts'
import { faults, formOf, keyProblem } from './key.ts'
import { type Borrower, lendProblem, lentTo, whyNotLent } from './lend.ts'
import { limitOf, limitProblem, withoutLimit } from './limit.ts'
import { type SecretReader, secretText, whyNoSecret } from './named.ts'
import { commandsIn, type Lookups, type Resolved } from './references.ts'
import { valueAt } from './tree.ts'
import { typed } from './typed.ts'

/** A team and the names of the secrets that it uses. */
export interface SecretUser extends SecretReader {
  secrets: readonly string[]
}

export interface Scope {
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
  /** Throws `invalid_request` when a team may send no requests in the name of `crm` or `crm@eu`. */
  mustLend(reference: string, team: SecretReader): void
  /** One line for each agent in whose name a team sends requests without leave. */
  missingLends(teams: readonly Borrower[]): Detail[]
  /** The packages that may send requests in the name of an agent. */
  lentTo(reference: string): string[]
  /** How many requests may be sent within a time in the name of `crm` or `crm@eu`; null without a limit. */
  limit(reference: string): { count: number; per: number } | null
  /** The named secrets whose references fail. */
  brokenSecrets(): Detail[]
  /**
   * A resolved value, unmasked. Undefined when it is not set, cannot be resolved, or is a command that has not run yet.
   */
  value(key: string): Json | undefined
  /** The key in the file of a setting that runs have, or would have if it were set. */
  placeOf(key: string): string
}

/** The checked settings of an agent, which are valid until a value changes. */
export interface CheckedSettings {
  definition: AgentDefinition
  details: Detail[]
  /** The settings as JSON, because each call of an agent gets a copy of its own. */
  text: string
}

/** What the file says at one moment, with references as they are written and with their values. */
export interface View {
  raw: JsonObject
  resolved: Resolved
  /** By reference: settings that need no command, of agents without a `check` of their own. */
  checked: Recent<string, CheckedSettings>
  /** Where in the file a setting of `raw` stands, or would stand if it were set. */
  placeOf(path: readonly string[]): string
}

/** The settings that an agent gets, with the types and defaults of its schema. Whom its account is lent to is not its own. */
export function ownSettings(settings: Json | undefined, definition: AgentDefinition): JsonObject {
  const own = typed(withoutLimit(settings ?? {}, definition), definition.settings) as JsonObject
  if (!definition.account || !isObject(own)) return own
  const { [LEND]: _, ...rest } = own
  return rest
}

export function refusalOf(details: Detail[]): CadreError {
  return new CadreError('invalid_request', details.map(({ message }) => message).join('; '), { details })
}

/** `learned` is called when commands have run. `view` throws `invalid_request` when the environment is gone. */
export function openScope(view: () => View, lookups: Lookups, learned: () => Promise<void>): Scope {
  const commandsBelow = (keys: readonly string[]) =>
    keys.flatMap(key => commandsIn(valueAt(view().raw, key.split('.')) ?? null))

  const prepare = async (keys: readonly string[]) => {
    const commands = commandsBelow(keys)
    if (commands.length > 0 && (await lookups.ask(commands))) await learned()
  }

  const knownOf = (reference: string, definition: AgentDefinition): CheckedSettings | null => {
    const known = view().checked.get(reference)
    return known?.definition === definition ? known : null
  }

  const checkAgent = (reference: string, definition: AgentDefinition): CheckedSettings => {
    const known = knownOf(reference, definition)
    if (known) return known
    const { resolved, checked } = view()
    const details = problems(reference, definition)
    const text = JSON.stringify(ownSettings(valueAt(resolved.value, ['agents', reference]), definition))
    const found = { definition, details, text }
    // An agent's own `check` runs each time, because it may look at files, and commands give a new value each hour.
    const mayChange = definition.check || definition.missing || commandsBelow([`agents.${reference}`]).length > 0
    if (!mayChange) checked.set(reference, found)
    return found
  }

  const problems = (reference: string, definition: AgentDefinition): Detail[] => {
    const { raw, placeOf } = view()
    const prefix = `agents.${reference}`
    const place = (below: string) => placeOf(`${prefix}${below}`.split('.'))
    const known = lookups.resolve(valueAt(raw, ['agents', reference]) ?? {}, '', 'keep')
    const settings = ownSettings(known.value, definition)
    const found = new Map(
      [...known.failures].map(([below, reason]) => {
        const key = place(below && `.${below}`)
        return [key, `${key}: ${reason}`]
      }),
    )
    const wrong = faults(definition.settings, settings)
    for (const { path, kind, message } of wrong) {
      const below = path.split('/').slice(1)
      const key = place(path.replaceAll('/', '.'))
      const isUnset = kind === 'missing' || valueAt(settings, below) === null
      const set = `set it with: ${commandLine('settings', 'set', formOf(definition, below, key), '-')}`
      const what =
        kind === 'unknown'
          ? `is not known: ${keyProblem([...prefix.split('.'), ...below], { get: () => definition, names: () => [] })}`
          : `${isUnset ? 'is not set' : message}; ${set}`
      if (!found.has(key)) found.set(key, `${key} ${what}`)
    }
    const lend = definition.account && valueAt(raw, ['agents', reference, LEND])
    const ofLend = lend === undefined || lend === null ? null : lendProblem(lend)
    if (ofLend !== null) found.set(place(`.${LEND}`), `${place(`.${LEND}`)} ${ofLend}`)
    const ofLimit = limitProblem(known.value, definition)
    if (ofLimit !== null) found.set(place('.limit'), `${place('.limit')}: ${ofLimit}`)
    const places = wrong.map(({ path }) => path)
    for (const { path, message } of agentProblems(definition, settings, places)) {
      const key = place(`.${path}`)
      if (!found.has(key)) found.set(key, `${key} ${message}`)
    }
    if (found.size === 0) {
      for (const name of definition.missing?.(settings) ?? []) {
        const key = place(`.${name}`)
        found.set(key, `${key} is not set; set it with: ${commandLine('settings', 'set', key, '-')}`)
      }
    }
    return [...found].map(([path, message]) => ({ path, message }))
  }

  const whyNot = (name: string, team: SecretReader): string | null => {
    const { raw, placeOf } = view()
    return whyNoSecret(raw, name, team, placeOf(['secrets', name]))
  }

  const failureOf = (name: string): Detail | null => {
    const { resolved, placeOf } = view()
    const key = `secrets.${name}`
    const found = [...resolved.failures].find(([path]) => path === key || path.startsWith(`${key}.`))
    if (!found) return null
    const path = placeOf(['secrets', name])
    return { path, message: `${path}: ${found[1]}` }
  }

  const lendRefusal = (reference: string, team: SecretReader): Detail | null => {
    const { raw, placeOf } = view()
    const path = placeOf(['agents', reference, LEND])
    const message = whyNotLent(raw, reference, team, path)
    return message === null ? null : { path, message }
  }

  /** Why the team cannot read the secret, as far as that is known. */
  const secretProblem = (name: string, team: SecretReader): Detail | null => {
    const refusal = whyNot(name, team)
    return refusal === null ? failureOf(name) : { path: view().placeOf(['secrets', name]), message: refusal }
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
      if (whyNot(name, team) === null) await unlessAborted(prepare([`secrets.${name}`]), signal)
      const problem = secretProblem(name, team)
      if (problem) throw refusalOf([problem])
      return secretText(view().resolved.value, name)!
    },
    prepareSecrets: teams =>
      prepare(
        teams.flatMap(team => team.secrets.filter(name => whyNot(name, team) === null).map(name => `secrets.${name}`)),
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
    mustLend(reference, team) {
      const refusal = lendRefusal(reference, team)
      if (refusal) throw refusalOf([refusal])
    },
    missingLends: teams =>
      teams.flatMap(team => team.accounts.flatMap(reference => lendRefusal(reference, team) ?? [])),
    lentTo: reference => lentTo(view().raw, reference),
    limit: reference => limitOf(view().resolved.value, reference),
    brokenSecrets: () => Object.keys(valueAt(view().raw, ['secrets']) ?? {}).flatMap(name => failureOf(name) ?? []),
    value: key => valueAt(view().resolved.value, key.split('.')),
    placeOf: key => view().placeOf(key.split('.')),
  }
}
