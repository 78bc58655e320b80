// Checks whether agents could do their work: their settings, and what the other system says about the credential. What it
// lacks is a fault only where a team of this home needs it. It also reports keys of settings.yml that nothing reads, named
// secrets that cannot be read, and whether the hub gives jobs. Writes nothing.

import type { Catalogue } from '../../agent/catalogue.ts'
import { createContext } from '../../agent/context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import type { AgentDefinition } from '../../agent/define.ts'
import { CadreError, type Detail, messageOf } from '../../error.ts'
import { isObject, type Json, type JsonObject } from '../../json.ts'
import { limitSignal } from '../../lived-time.ts'
import type { Masked } from '../../secrets/masked.ts'
import { createRedactor, type Redactor } from '../../secrets/redact.ts'
import { noAgent, type Scope, type Settings } from '../../settings/settings.ts'
import { listed } from '../../text/spelling.ts'
import type { Finding } from '../../wire/calls/agents.ts'
import { whyNoJobs } from '../home/hub-approval.ts'
import type { Sandboxes } from '../packages/sandboxes.ts'
import { type HomeParts, needsOfTeams, sortMissing } from './permission-needs.ts'

export type { Finding }

export interface Patient extends HomeParts {
  sandboxes: Sandboxes
}

/** What is asked about. */
export interface Question {
  /** One agent or account; all of them without it. */
  agent?: string | undefined
  /**
   * With the settings of this environment; null: with the plain ones. Without it the plain ones and, of each
   * environment, those that it has of its own.
   */
  environment?: string | null | undefined
}

/** An agent or account with the settings of an environment, or with the plain ones. */
interface Account {
  agent: string
  environment: string | null
  isUnset: boolean
}

const TIMEOUT = 60_000

/**
 * The findings of one agent, or of all agents by name. Throws `invalid_request` for an agent or an environment that does
 * not exist.
 */
export async function examine(patient: Patient, question: Question): Promise<Masked<Finding[]>> {
  const { catalogue, settings } = patient
  const { agent: only, environment } = question
  if (only !== undefined && !catalogue.get(only)) {
    throw new CadreError('invalid_request', noAgent(only, catalogue))
  }
  const accounts = accountsOf(patient, question)
  const { findings, unread } = await sortedByNeed(
    await Promise.all(accounts.map(async account => ({ account, finding: await look(account, patient) }))),
    patient,
  )
  const isOfOne = typeof environment === 'string'
  const others = await Promise.all([
    ofFile(patient, question, accounts),
    ...(isOfOne ? [] : [ofSandboxes(patient, only), ofHub(patient, only)]),
  ])
  return createRedactor(settings.secrets(catalogue)).json([...findings, ...others.flat(), ...unread])
}

/** Teams are only looked at where a credential lacks something. */
async function sortedByNeed(
  looked: readonly { account: Account; finding: Finding }[],
  patient: Patient,
): Promise<Record<'findings' | 'unread', Finding[]>> {
  if (looked.every(({ finding }) => finding.missing.length === 0)) {
    return { findings: looked.map(({ finding }) => finding), unread: [] }
  }
  const needs = await needsOfTeams(patient)
  const findings = looked.map(({ account, finding }) => {
    if (finding.missing.length === 0) return finding
    const sorted = sortMissing(finding.missing, account, needs, patient.settings)
    return { ...finding, ...sorted, state: sorted.missing.length > 0 ? ('wrong' as const) : ('fine' as const) }
  })
  const unread = needs.unread.map(({ what, why }) => {
    return {
      agent: what,
      state: 'settings' as const,
      who: null,
      missing: [],
      text: `not all that it needs is known: ${why}`,
    }
  })
  return { findings, unread }
}

/** What is looked at, by name. An agent that only environments have settings for is not looked at without one. */
function accountsOf({ catalogue, settings }: Patient, { agent: only, environment }: Question): Account[] {
  const inPlace = configured(settings.in(environment ?? null).value('agents'), catalogue)
  const elsewhere = (environment === undefined ? settings.environments() : []).flatMap(name =>
    configured(settings.value(`environments.${name}.agents`), catalogue).map(agent => ({ agent, environment: name })),
  )
  const wanted = only === undefined ? [...new Set([...catalogue.names(), ...inPlace])] : [only]
  const here = wanted
    .filter(agent => inPlace.includes(agent) || !elsewhere.some(each => each.agent === agent))
    .map(agent => ({
      ...{ agent, environment: environment ?? null },
      isUnset: only === undefined && !inPlace.includes(agent),
    }))
  const besides = elsewhere
    .filter(({ agent }) => only === undefined || agent === only)
    .map(each => ({ ...each, isUnset: false }))
  return [...here, ...besides].sort((one, other) => (one.agent < other.agent ? -1 : one.agent > other.agent ? 1 : 0))
}

/** The agents and accounts that have settings. */
const configured = (own: Json | undefined, catalogue: Catalogue): string[] =>
  isObject(own) ? Object.keys(own).filter(name => catalogue.get(name)) : []

/** The finding that the hub gives this daemon no jobs, if the daemon is enrolled there. */
async function ofHub({ home, settings }: Patient, only: string | undefined): Promise<Finding[]> {
  if (only !== undefined) return []
  await settings.prepare(['hub'])
  const text = settings.value('hub.realm_token') === undefined ? null : whyNoJobs(home)
  return text === null ? [] : [{ agent: 'hub', state: 'wrong', who: null, missing: [], text }]
}

/** Whether the sandboxes that the owner asks for, or the default, can be had. What failed before is tried again. */
async function ofSandboxes({ sandboxes }: Patient, only: string | undefined): Promise<Finding[]> {
  if (only !== undefined && only !== 'exec') return []
  const [own, packages] = [await sandboxes.choose(false, true), await sandboxes.choose(true, true)]
  const choices = [
    ['exec.sandbox', own],
    ['packages.sandbox', packages],
  ] as const
  return choices.flatMap(([agent, { kind, fails, warning }]) => {
    if (fails !== null) return { agent, state: 'wrong' as const, who: null, missing: [], text: fails }
    const text = warning ?? (kind === 'none' ? null : `commands run in a sandbox of ${kind}`)
    return text === null ? [] : { agent, state: 'settings' as const, who: null, missing: [], text }
  })
}

/** What is wrong with settings.yml itself. Of one agent or one environment, only what concerns it. */
async function ofFile(
  { settings, catalogue }: Patient,
  { agent: only, environment }: Question,
  accounts: readonly Account[],
): Promise<Finding[]> {
  if (only === undefined) await settings.prepare(['secrets'])
  await settings.prepare(settings.onFail().map(({ agent }) => `agents.${agent}`))
  const problems = [
    ...settings.unknown(catalogue),
    ...settings.brokenSecrets(),
    ...(only === undefined ? await secretsInEnvironments(settings) : []),
    ...(only === undefined ? settings.onFailProblems(catalogue) : []),
  ]
  // A key that an agent's schema refuses is a problem of that agent, and reported there.
  const reported = new Set(
    accounts.flatMap(({ agent, environment, isUnset }) =>
      isUnset
        ? []
        : settings
            .in(environment)
            .problems(agent, catalogue.get(agent)!)
            .map(({ path }) => path),
    ),
  )
  const above = typeof environment === 'string' ? `environments.${environment}.` : ''
  const below = only === undefined ? above : `${above}agents.${only}.`
  const concerning = problems.filter(({ path }) => !reported.has(path) && path.startsWith(below))
  return concerning.map(({ path, message }) => ({ agent: path, state: 'wrong', who: null, missing: [], text: message }))
}

/** The secrets of environments that cannot be read. */
async function secretsInEnvironments(settings: Settings): Promise<Detail[]> {
  const found = settings.environments().map(async name => {
    const scope = settings.in(name)
    await scope.prepare(['secrets'])
    return scope.brokenSecrets().filter(({ path }) => path.startsWith(`environments.${name}.`))
  })
  return (await Promise.all(found)).flat()
}

/** Examines one account, and says which packages may send requests in its name. */
async function look(account: Account, patient: Patient): Promise<Finding> {
  const { agent, environment } = account
  const scope = patient.settings.in(environment)
  const finding = { ...(await found(account, scope, patient)), ...(environment !== null && { environment }) }
  const packages = scope.lentTo(agent)
  if (packages.length === 0) return finding
  return { ...finding, text: `${finding.text}; ${listed(packages)} may send any request in its name (lend)` }
}

/** An agent without settings is only a problem if the user asked for that agent. */
async function found({ agent, isUnset }: Account, settings: Scope, patient: Patient): Promise<Finding> {
  const { catalogue } = patient
  const definition = catalogue.get(agent)!
  const finding = { agent, who: null, missing: [] }
  await settings.prepare([`agents.${agent}`])
  const problems = settings.problems(agent, definition)
  if (problems.length > 0 && isUnset) return { ...finding, state: 'unset', text: 'not set up' }
  if (problems.length > 0) {
    return { ...finding, state: 'wrong', text: problems.map(({ message }) => message).join('; ') }
  }
  if (!definition.doctor) {
    const needsNone = Object.keys(definition.settings.properties).length === 0
    return {
      ...finding,
      state: 'settings',
      text: needsNone ? 'needs no settings' : 'the settings are valid; no system was asked',
    }
  }
  const redactor = createRedactor(patient.settings.secrets(catalogue))
  try {
    const answer = await definition.doctor(
      contextOf(agent, definition, await settings.of(agent, definition), redactor, patient),
    )
    // This redactor also knows what the agent has learnt meanwhile, such as an access token.
    const { who, missing, text, expires_at } = redactor.json(answer)
    // An agent computes it, so it may be no time at all.
    const end = new Date(expires_at ?? Number.NaN).getTime()
    return { agent, state: 'fine', who, missing, text, ...(end >= 0 && { expires_at: end }) }
  } catch (error) {
    const hint = error instanceof AgentError && error.hint ? `; ${error.hint}` : ''
    return { ...finding, state: 'wrong', text: redactor.text(messageOf(error) + hint) }
  }
}

/** The context for a doctor. There is no run, so it may only use the settings, the signal and fetch. */
function contextOf(
  agent: string,
  definition: AgentDefinition,
  settings: JsonObject,
  redactor: Redactor,
  { home, settings: all, log }: Patient,
) {
  return createContext({
    agent,
    settings,
    network: { ...all.network(), literalOrigins: [] },
    addresses: () => definition.addresses?.(settings) ?? [],
    redactor,
    signal: limitSignal(TIMEOUT).signal,
    log: (message, fields) => log.info(message, fields),
    stateDir: home,
    workspace: home,
    outside: false,
    key: crypto.randomUUID(),
    attempt: 1,
    run: { id: 'doctor', name: null, team: '@local/doctor', created_at: Date.now(), url: null },
    phase: { name: 'doctor' },
    effect: 'read',
  })
}
