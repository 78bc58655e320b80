// Teams as objects, and an agent whose entries name functions of the test, so that a test defines in one line what
// happens in a phase.

import type { AgentContext } from '../../lib/agent/agent-context.ts'
import { agent, Type } from '../../lib/agent/cadre.ts'
import type { Agent } from '../../lib/agent/define.ts'
import type { Json, JsonObject } from '../../lib/json.ts'

/** The function that an entry of this name calls. It returns the `data` of its phase. */
export type Act = (context: AgentContext, value: Json) => unknown

/**
 * The agent `act`. `calls` lists its entries in the order of the calls, each with its value if it has one. `attempts`
 * lists the matching `<run> <phase> <attempt>`.
 */
export function scripted(acts: Record<string, Act>): { agents: { act: Agent }; calls: string[]; attempts: string[] } {
  const calls: string[] = []
  const attempts: string[] = []
  const act = agent({
    type: 'connector',
    version: '1.0.0',
    description: 'Calls the functions that its entries name.',
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

/** A phase with the agent `act`. */
export function act(phase: string, name: string, more: JsonObject = {}): JsonObject {
  const { value, ...fields } = more
  return { name: phase, agent: 'act', sources: [{ name, ...(value !== undefined && { value }) }], ...fields }
}

/** A phase with one shell command. */
export function shell(phase: string, run: string, more: JsonObject = {}): JsonObject {
  const { env, ...fields } = more
  return { name: phase, agent: 'exec', commands: [{ name: 'c', run, ...(env && { env }) }], ...fields }
}

/** A map phase `each` over these items. Each item is the name of its sub-run. */
export function keyed(items: Json[], team: string, more: JsonObject = {}): JsonObject {
  return { name: 'each', type: 'map', items, key: '{{ item }}', team, ...more }
}

/** A team.yml as JSON, which is also YAML. */
export function team(phases: JsonObject[], more: JsonObject = {}): string {
  return JSON.stringify({ name: '@local/fault', version: '1.0.0', ...more, phases })
}
