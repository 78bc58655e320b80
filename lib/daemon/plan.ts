// Describes what a run would do without doing it: every phase at every depth, the inputs that would be passed, the
// settings and secrets that are missing, and each write to another system with its phase and credential.

import type { AgentDefinition, Handler } from '../agent/define.ts'
import { isSecret } from '../agent/define.ts'
import type { Effect } from '../agent/effect.ts'
import { messageOf } from '../error.ts'
import type { Json, JsonObject } from '../json.ts'
import { maskInputs } from '../run/engine.ts'
import type { SecretUser } from '../settings/settings.ts'
import { type Bundle, inputsFor, needsOfBundle, type StandardPhase, teamsOf } from '../team/team.ts'
import type { Plan, PlannedPhase, PlannedTeam, PlannedWrite } from '../wire/plans.ts'
import { loadTeam, missingSettings, type RunRequest, type Stock, secretUsers } from './start-run.ts'

/** Throws `invalid_request` with every problem of the team. */
export async function planRun(stock: Stock, request: RunRequest): Promise<Plan> {
  const bundle = await loadTeam(stock, request)
  const fields = bundle.team(bundle.root).inputs
  const { values, problems } = inputsFor(fields, request.inputs ?? {})
  const { concurrency, problem } = heldBy(bundle, values, problems.length === 0)
  const writes: PlannedWrite[] = []
  const team = planTeam(stock, bundle, bundle.root, [], [], writes)
  const users = secretUsers(bundle)
  const { labels, agents } = needsOfBundle(bundle)
  return {
    inputs: maskInputs(fields, values),
    secrets: namesOf(users),
    concurrency,
    requires: { labels, agents },
    missing: [...problems, ...problem, ...missingSettings(stock, bundle), ...stock.settings.missingSecrets(users)],
    team,
    writes,
  }
}

function heldBy(bundle: Bundle, inputs: JsonObject, complete: boolean) {
  const held = bundle.team(bundle.root).key
  if (!held) return { concurrency: null, problem: [] }
  const { limit, whenFull: when_full } = held
  try {
    return { concurrency: { key: complete ? held.of(inputs) : null, limit, when_full }, problem: [] }
  } catch (error) {
    return {
      concurrency: { key: null, limit, when_full },
      problem: [{ path: '/inputs', message: messageOf(error) }],
    }
  }
}

/** Says of each sub-team with a key that its sub-runs do not hold it. */
export function unheldKeys(bundle: Bundle): string[] {
  return teamsOf(bundle).flatMap(([key, { name, key: held }]) =>
    key === bundle.root || !held
      ? []
      : [
          `the key ${held.source} of ${name} is held only by runs that are started by themselves, and not by its sub-runs`,
        ],
  )
}

/** The secrets that teams use, each once, in order. */
export function namesOf(users: readonly SecretUser[]): string[] {
  return [...new Set(users.flatMap(({ secrets }) => secrets))].sort()
}

function planTeam(
  stock: Stock,
  bundle: Bundle,
  key: string,
  above: readonly string[],
  path: readonly string[],
  writes: PlannedWrite[],
): PlannedTeam {
  const { name, version, phases, listeners, key: held } = bundle.team(key)
  if (above.includes(key)) return { name, version, recursive: true, phases: [] }
  for (const { name, agent } of listeners) addWrite(stock, writes, [...path, name], agent, null, 'notify')
  return {
    name,
    version,
    ...(held && above.length > 0 && { unheld: held.source }),
    phases: phases.map(phase => {
      const planned: PlannedPhase = {
        name: phase.name,
        type: phase.type,
        depends_on: phase.dependsOn.map(position => phases[position]!.name),
        ...(phase.when && { when: phase.when.source }),
      }
      const place = [...path, phase.name]
      if (phase.type === 'gate') return planned
      if (phase.type === 'standard') {
        planWrites(stock, writes, place, phase)
        const entries = [...phase.sources, ...phase.targets].map(({ entry }) => entry.source)
        return {
          ...planned,
          agent: phase.agent,
          ...(phase.action !== undefined && { action: phase.action }),
          entries: entries.length > 0 ? entries : [phase.fields.source],
        }
      }
      const below = planTeam(stock, bundle, phase.team, [...above, key], place, writes)
      const items = phase.type === 'map' ? { items: phase.items.source } : {}
      return { ...planned, inputs: phase.inputs.source, ...items, below }
    }),
  }
}

function planWrites(stock: Stock, writes: PlannedWrite[], place: string[], phase: StandardPhase): void {
  const { agent, action = null } = phase
  const kinds = [
    ['source', phase.sources],
    ['target', phase.targets],
  ] as const
  for (const [kind, entries] of kinds) {
    for (const { entry } of entries) addWrite(stock, writes, place, agent, action, kind, entry.source)
  }
  if (phase.sources.length + phase.targets.length === 0) {
    addWrite(stock, writes, place, agent, action, 'phase', phase.fields.source)
  }
}

function addWrite(
  stock: Stock,
  writes: PlannedWrite[],
  phase: string[],
  agent: string,
  action: string | null,
  kind: 'source' | 'target' | 'phase' | 'notify',
  entry?: Json,
): void {
  const definition = stock.catalogue.get(agent)
  const handler: Handler | undefined = action === null ? definition?.[kind] : definition?.actions?.[action]
  if (!definition || !handler || agent === 'exec') return
  const effect = effectOf(handler, entry)
  if (effect === 'read') return
  writes.push({
    phase,
    agent,
    action,
    effect,
    to: target(stock, agent, entry),
    credentials: secrets(agent, definition),
  })
}

/**
 * A handler whose effect depends on the entry may fail here, because the entry still has a template in place of a
 * value.
 */
function effectOf({ effect }: Handler, entry: Json | undefined): Effect | 'by entry' {
  if (typeof effect !== 'function') return effect
  try {
    return effect(entry)
  } catch {
    return 'by entry'
  }
}

function target(stock: Stock, agent: string, entry: Json | undefined): string {
  const url = (entry as JsonObject | undefined)?.url
  if (typeof url === 'string') return url
  for (const name of ['base_url', 'endpoint', 'smtp_host', 'subdomain', 'provider']) {
    const value = stock.settings.value(`agents.${agent}.${name}`)
    if (typeof value === 'string') return value
  }
  return agent
}

function secrets(agent: string, { settings }: AgentDefinition): string[] {
  return Object.entries(settings.properties ?? {})
    .filter(([, schema]) => isSecret(schema))
    .map(([name]) => `agents.${agent}.${name}`)
}
