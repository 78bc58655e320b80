// Describes what a run would do without doing it: every phase at every depth, the inputs that would be passed, the
// settings and secrets that are missing, and each write to another system with its phase and credential.

import { readFileSync } from 'node:fs'
import type { Handler } from '../../agent/define.ts'
import { messageOf } from '../../error.ts'
import { declaredWords } from '../../firing/declared.ts'
import type { Json, JsonObject } from '../../json.ts'
import { maskInputs } from '../../run/engine.ts'
import type { Masked } from '../../secrets/masked.ts'
import { createRedactor } from '../../secrets/redact.ts'
import type { SecretUser } from '../../settings/settings.ts'
import {
  accountIn,
  agentRefs,
  type Bundle,
  hasSubRuns,
  inputsFor,
  needsOfBundle,
  type Phase,
  retriesNoWrite,
  reviewOf,
  type StandardPhase,
  secretReader,
  teamsOf,
} from '../../team/team.ts'
import { type FileNote, unseenIn } from '../../text/unseen.ts'
import type { Plan, PlannedPhase, PlannedTeam } from '../../wire/records/plans.ts'
import { plannedWrites } from './planned-writes.ts'
import {
  environmentOf,
  loadTeam,
  missingLends,
  missingSecrets,
  missingSettings,
  type Named,
  type RunRequest,
  type Stock,
  secretUsers,
} from './start-run.ts'

/** Throws `invalid_request` with every problem of the team. */
export async function planRun(stock: Stock, request: RunRequest & Named): Promise<Masked<Plan>> {
  const bundle = await loadTeam(stock, request)
  const fields = bundle.team(bundle.root).inputs
  const { values, problems } = inputsFor(fields, request.inputs ?? {})
  const found = await sandboxesOf(stock, bundle)
  const chosen = environmentOf(stock, bundle, request.environment)
  const isComplete = problems.length + chosen.problems.length === 0
  const { concurrency, problem } = heldBy(bundle, values, chosen.environment, isComplete)
  const { catalogue } = stock
  const team = planTeam({ catalogue, found }, bundle, bundle.root, [])
  const { labels, agents } = needsOfBundle(bundle)
  // A secret that somebody wrote into the file itself is not shown either.
  return createRedactor(stock.settings.secrets(catalogue)).json<Plan>({
    inputs: maskInputs(fields, values),
    environment: chosen.environment,
    ...(chosen.review && { review: chosen.review }),
    secrets: namesOf(secretUsers(bundle)),
    concurrency,
    requires: { labels, agents },
    ...declaredIn(bundle),
    warnings: found.warnings,
    missing: [
      ...problems,
      ...chosen.problems,
      ...problem,
      ...missingSettings(stock, bundle, chosen),
      ...missingSecrets(bundle, chosen),
      ...missingLends(bundle, chosen),
    ],
    team,
    writes: plannedWrites({ catalogue, scope: chosen.scope }, bundle),
  })
}

function declaredIn(bundle: Bundle): Pick<Plan, 'triggers'> {
  const tz = Intl.DateTimeFormat().resolvedOptions().timeZone
  const triggers = declaredWords(bundle.team(bundle.root), { tz, now: Date.now() })
  return triggers.length === 0 ? {} : { triggers }
}

/** Where the commands of each team run, and what to know about it. */
interface FoundSandboxes {
  of(key: string): string
  warnings: string[]
}

async function sandboxesOf({ sandboxes }: Stock, bundle: Bundle): Promise<FoundSandboxes> {
  const kinds = new Map<string, string>()
  const warnings = new Set<string>()
  for (const [key, { phases }] of teamsOf(bundle)) {
    const { name, fromPath } = secretReader(bundle, key)
    const commanding = phases.filter(hasCommands)
    if (commanding.length === 0) continue
    const { kind, fails, warning } = await sandboxes.choose(!fromPath)
    kinds.set(key, kind)
    const network = kind !== 'none' && commanding.some(needsNetwork) ? sandboxes.whyNoNetwork(name) : null
    for (const text of [fails, warning, network]) if (text !== null) warnings.add(text)
  }
  return { of: key => kinds.get(key) ?? 'none', warnings: [...warnings] }
}

const hasCommands = (phase: Phase): boolean =>
  phase.type === 'gate'
    ? phase.commands.length > 0
    : phase.type === 'standard' && phase.agent.split('@', 1)[0] === 'exec'

function needsNetwork(phase: Phase): boolean {
  if (phase.type === 'gate') return phase.needs.includes('network')
  const { needs } = (phase.type === 'standard' ? phase.fields.source : {}) as { needs?: Json }
  return Array.isArray(needs) && needs.includes('network')
}

function heldBy(bundle: Bundle, inputs: JsonObject, environment: string | null, complete: boolean) {
  const held = bundle.team(bundle.root).key
  if (!held) return { concurrency: null, problem: [] }
  const { limit, whenFull: when_full } = held
  try {
    return { concurrency: { key: complete ? held.of(inputs, environment) : null, limit, when_full }, problem: [] }
  } catch (error) {
    return {
      concurrency: { key: null, limit, when_full },
      problem: [{ path: '/inputs', message: messageOf(error) }],
    }
  }
}

/** What a person may not expect of a valid team. */
export function notesOf({ catalogue }: Pick<Stock, 'catalogue'>, bundle: Bundle): FileNote[] {
  return [...unheldKeys(bundle), ...idleRetries(catalogue, bundle), ...unseenInAll(catalogue, bundle)]
}

/** Says where the teams, and agents that somebody added, have characters that are not what they look like. */
function unseenInAll(catalogue: Stock['catalogue'], bundle: Bundle): FileNote[] {
  const agents = new Set(teamsOf(bundle).flatMap(([, team]) => agentRefs(team)))
  const files = new Set([...agents].flatMap(agent => catalogue.ownFile(agent) ?? []))
  return [
    ...Object.values(bundle.json().teams).flatMap(({ file, text }) => unseenIn(file, text)),
    ...[...files].flatMap(file => unseenIn(file, readFileSync(file))),
  ]
}

/** Says of each phase with `retry` whose writes are never repeated that a person is asked instead. */
function idleRetries(catalogue: Stock['catalogue'], bundle: Bundle): FileNote[] {
  return teamsOf(bundle).flatMap(([, { phases }]) =>
    phases
      .filter(phase => phase.type === 'standard' && retriesNoWrite(catalogue, phase))
      .map(({ name, place }) => ({
        place,
        message:
          `phase ${name} writes \`once\`, so \`retry\` repeats nothing after a lost reply, a 408 or a 5xx, and a ` +
          'person is asked (an entry of http that may be repeated says `effect: idempotent`)',
      })),
  )
}

/** Says of each sub-team with a key that its sub-runs do not hold it. */
function unheldKeys(bundle: Bundle): FileNote[] {
  return teamsOf(bundle).flatMap(([key, { name, key: held }]) => {
    if (key === bundle.root || !held) return []
    const message = `only a top run of ${name} holds its key ${held.source}; as a sub-run ${name} does not hold it`
    return [{ place: null, message }]
  })
}

/** The secrets that teams use, each once, in order. */
export function namesOf(users: readonly SecretUser[]): string[] {
  return [...new Set(users.flatMap(({ secrets }) => secrets))].sort()
}

function planTeam(
  stock: Pick<Stock, 'catalogue'> & { found: FoundSandboxes },
  bundle: Bundle,
  key: string,
  above: readonly string[],
): PlannedTeam {
  const found = bundle.team(key)
  const { name, version, phases, listeners, key: held } = found
  if (above.includes(key)) return { name, version, recursive: true, phases: [] }
  return {
    name,
    version,
    ...(held && above.length > 0 && { unheld: held.source }),
    ...(listeners.length > 0 && {
      listeners: listeners.map(({ name, agent, on }) => ({ name, agent, events: Object.keys(on) })),
    }),
    phases: phases.map(phase => {
      const planned = {
        ...plannedPhase(phase, phases),
        ...(hasCommands(phase) && { sandbox: stock.found.of(key) }),
        ...(needsNetwork(phase) && { network: true }),
      }
      if (hasSubRuns(phase)) {
        return { ...planned, below: planTeam(stock, bundle, phase.team, [...above, key]) }
      }
      if (phase.type !== 'standard') return planned
      const requests = requestsOf(stock, phase)
      return {
        ...planned,
        ...(retriesNoWrite(stock.catalogue, phase) && { asks_instead: true }),
        ...(requests.length > 0 && { requests }),
      }
    }),
  }
}

/** The team of a run as it was read when the run began, without the teams below it. */
export function teamAsRead(bundle: Bundle, key: string): PlannedTeam {
  const { name, version, phases } = bundle.team(key)
  return { name, version, phases: phases.map(phase => plannedPhase(phase, phases)) }
}

function plannedPhase(phase: Phase, phases: readonly Phase[]): PlannedPhase {
  const review = reviewOf(phase)
  return {
    name: phase.name,
    type: phase.type,
    depends_on: phase.dependsOn.map(position => phases[position]!.name),
    ...(phase.when && { when: phase.when.source }),
    ...(phase.retry.attempts > 1 && { max_attempts: phase.retry.attempts }),
    ...(phase.repeat && { repeat: { ...phase.repeat, until: phase.repeat.until.source } }),
    ...(phase.limit && { limit: phase.limit }),
    ...(phase.timeout !== undefined && { timeout: phase.timeout }),
    ...(phase.always && { always: true }),
    ...(phase.onFailure !== 'fail' && { on_failure: phase.onFailure }),
    ...(review && { reviewers: review.reviewers }),
    ...(hasSubRuns(phase) && { inputs: phase.inputs.source }),
    ...(phase.type === 'map' && { items: phase.items.source }),
    ...(phase.type === 'standard' && plannedCall(phase)),
  }
}

function plannedCall(phase: StandardPhase): Pick<PlannedPhase, 'agent' | 'action' | 'entries'> {
  const entries = [...phase.sources, ...phase.targets].map(({ entry }) => entry.source)
  return {
    agent: phase.agent,
    ...(phase.action !== undefined && { action: phase.action }),
    entries: entries.length > 0 ? entries : [phase.fields.source],
  }
}

/** The requests of entries that say their address and method themselves, as those of http do. */
function requestsOf({ catalogue }: Pick<Stock, 'catalogue'>, { agent, sources, targets }: StandardPhase): Request[] {
  const definition = catalogue.get(agent)
  const of = (handler: Handler | undefined, entries: StandardPhase['sources']) =>
    entries.flatMap(({ name, entry }) => {
      const { url, method = methodIn(handler) } = entry.source as JsonObject
      const account = accountIn(agent, entry.source)
      const isRequest = typeof url === 'string' && typeof method === 'string'
      return isRequest ? [{ name, method, url, ...(account !== null && { account }) }] : []
    })
  return [...of(definition?.source, sources), ...of(definition?.target, targets)]
}
type Request = NonNullable<PlannedPhase['requests']>[number]

/** The method of an entry that names none. */
function methodIn(handler: Handler | undefined): Json | undefined {
  return (handler?.entry.properties.method as { default?: Json } | undefined)?.default
}
