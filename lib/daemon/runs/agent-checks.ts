// Checks whether agents could do their work: their settings, and what the other system says about the credential. It
// also reports keys of settings.yml that nothing reads, named secrets that cannot be read, and whether the hub gives
// jobs. Writes nothing.

import type { Catalogue } from '../../agent/catalogue.ts'
import { createContext } from '../../agent/context.ts'
import { AgentError } from '../../agent/core/agent-error.ts'
import type { AgentDefinition } from '../../agent/define.ts'
import { CadreError, type Detail, messageOf } from '../../error.ts'
import { isObject, type JsonObject } from '../../json.ts'
import { limitSignal } from '../../lived-time.ts'
import type { Log } from '../../log/log.ts'
import type { Masked } from '../../secrets/masked.ts'
import { createRedactor, type Redactor } from '../../secrets/redact.ts'
import { noAgent, type Settings } from '../../settings/settings.ts'
import { listed } from '../../text/spelling.ts'
import type { Finding } from '../../wire/calls/agents.ts'
import { whyNoJobs } from '../home/hub-approval.ts'
import type { Sandboxes } from '../packages/sandboxes.ts'

export type { Finding }

export interface Patient {
  home: string
  catalogue: Catalogue
  settings: Settings
  sandboxes: Sandboxes
  log: Log
}

const TIMEOUT = 60_000

/** The findings of one agent, or of all agents by name. Throws `invalid_request` for an agent that does not exist. */
export async function examine(patient: Patient, only: string | undefined): Promise<Masked<Finding[]>> {
  const { catalogue, settings } = patient
  if (only !== undefined && !catalogue.get(only)) {
    throw new CadreError('invalid_request', noAgent(only, catalogue))
  }
  const references = configured(settings, catalogue)
  const wanted = only === undefined ? [...new Set([...catalogue.names(), ...references])].sort() : [only]
  const findings = await Promise.all(
    wanted.map(async reference => {
      const isUnset = only === undefined && !references.includes(reference)
      return withLeave(await look(reference, catalogue.get(reference)!, isUnset, patient), patient)
    }),
  )
  const others = await Promise.all([ofFile(patient, only), ofSandboxes(patient, only), ofHub(patient, only)])
  return createRedactor(settings.secrets(catalogue)).json([...findings, ...others.flat()])
}

/** The agents and accounts that have settings. */
function configured(settings: Settings, catalogue: Catalogue): string[] {
  const own = settings.value('agents')
  return isObject(own) ? Object.keys(own).filter(name => catalogue.get(name)) : []
}

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

/** What is wrong with settings.yml itself. When one agent is asked for, only what concerns that agent. */
async function ofFile({ settings, catalogue }: Patient, only: string | undefined): Promise<Finding[]> {
  if (only === undefined) await settings.prepare(['secrets'])
  await settings.prepare(settings.onFail().map(({ agent }) => `agents.${agent}`))
  const unknown = settings.unknown(catalogue)
  const inOthers = only === undefined ? await inEnvironments(settings, catalogue) : []
  const problems = [
    ...unknown,
    ...settings.brokenSecrets(),
    ...inOthers.filter(({ path }) => !unknown.some(each => each.path === path)),
    ...(only === undefined ? settings.onFailProblems(catalogue) : []),
  ]
  // A key that an agent's schema refuses is a problem of that agent, and reported there.
  const reported = new Set(
    configured(settings, catalogue).flatMap(each =>
      settings.problems(each, catalogue.get(each)!).map(({ path }) => path),
    ),
  )
  const concerning = problems.filter(
    ({ path }) => !reported.has(path) && (only === undefined || path.startsWith(`agents.${only}.`)),
  )
  return concerning.map(({ path, message }) => ({ agent: path, state: 'wrong', who: null, missing: [], text: message }))
}

/** What is wrong with the accounts and secrets that environments have of their own. No system is asked. */
async function inEnvironments(settings: Settings, catalogue: Catalogue): Promise<Detail[]> {
  const names = settings.environments()
  const found = names.map(async name => {
    const scope = settings.in(name)
    await scope.prepare(['agents', 'secrets'])
    const own = settings.value(`environments.${name}.agents`)
    const agents = isObject(own) ? Object.keys(own) : []
    const problems = agents.flatMap(agent => {
      const definition = catalogue.get(agent)
      return definition ? scope.problems(agent, definition) : []
    })
    return [...problems, ...scope.brokenSecrets()].filter(({ path }) => path.startsWith(`environments.${name}.`))
  })
  return (await Promise.all(found)).flat()
}

/** Says which packages may send requests in the name of an agent, in whichever environment. */
function withLeave(finding: Finding, { settings }: Patient): Finding {
  const scopes = [settings, ...settings.environments().map(name => settings.in(name))]
  const packages = [...new Set(scopes.flatMap(scope => scope.lentTo(finding.agent)))]
  if (packages.length === 0) return finding
  return { ...finding, text: `${finding.text}; ${listed(packages)} may send any request in its name (lend)` }
}

/** Examines one agent. An agent without settings is only a problem if the user asked for that agent. */
async function look(agent: string, definition: AgentDefinition, isUnset: boolean, patient: Patient): Promise<Finding> {
  const { settings, catalogue } = patient
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
  const redactor = createRedactor(settings.secrets(catalogue))
  try {
    const found = await definition.doctor(
      contextOf(agent, definition, await settings.of(agent, definition), redactor, patient),
    )
    // This redactor also knows what the agent has learnt meanwhile, such as an access token.
    const { who, missing, text } = redactor.json(found)
    return { agent, state: missing.length > 0 ? 'wrong' : 'fine', who, missing, text }
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
