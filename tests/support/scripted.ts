// Teams as objects, and an agent whose entries name what it does, so that a test says in one line what happens in a phase.

import { agent, Type } from '../../lib/agent/cadre.ts'
import type { Agent, AgentContext } from '../../lib/agent/define.ts'
import type { Json, JsonObject } from '../../lib/json.ts'

/** What an entry of this name does. It gives the `data` of its phase. */
export type Act = (context: AgentContext, value: Json) => unknown

/**
 * The agent `act`; in `calls` the names of its entries as they were called, each with its value where it has one, and in
 * `attempts` whose they were: `<run> <phase> <attempt>`.
 */
export function scripted(acts: Record<string, Act>): { agents: { act: Agent }; calls: string[]; attempts: string[] } {
  const calls: string[] = []
  const attempts: string[] = []
  const act = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Does what its entries name.',
    settings: Type.Object({}),
    source: {
      effect: 'idempotent',
      entry: Type.Object({ name: Type.String(), value: Type.Optional(Type.Any()) }),
      async run({ name, value }, context) {
        calls.push(value === undefined ? name : `${name} ${value}`)
        attempts.push(`${context.run.id} ${context.phase.name} ${context.attempt}`)
        const data = await acts[name]!(context as AgentContext, value ?? null)
        return { text: name, data: (data ?? {}) as Json }
      },
    },
  })
  return { agents: { act }, calls, attempts }
}

/** A phase of the agent `act`. */
export function act(phase: string, name: string, more: JsonObject = {}): JsonObject {
  const { value, ...fields } = more
  return { name: phase, agent: 'act', sources: [{ name, ...(value !== undefined && { value }) }], ...fields }
}

/** A phase of one shell command. */
export function shell(phase: string, run: string, more: JsonObject = {}): JsonObject {
  const { env, ...fields } = more
  return { name: phase, agent: 'exec', commands: [{ name: 'c', run, ...(env && { env }) }], ...fields }
}

/** A map phase `each` over these items, each the name of its run. */
export function keyed(items: Json[], team: string, more: JsonObject = {}): JsonObject {
  return { name: 'each', type: 'map', items, key: '{{ item }}', team, ...more }
}

/** team.yml as JSON, which is YAML too. */
export function team(phases: JsonObject[], more: JsonObject = {}): string {
  return JSON.stringify({ name: '@local/fault', version: '1.0.0', ...more, phases })
}
