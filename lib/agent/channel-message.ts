// What agents that send messages to people share: which channels, and which words where the author gave none.

import { oneLine } from '../one-line.ts'
import { Type } from '../type.ts'
import { type AgentContext, AgentError } from './define.ts'

/** The fields of a message: on a phase that sends, and with an event of `notify`. */
export const messageFields = {
  /** Names among those of the settings; all of them when it is absent. */
  channels: Type.Optional(Type.Array(Type.String({ minLength: 1 }), { minItems: 1, uniqueItems: true })),
  subject: Type.Optional(Type.String({ minLength: 1 })),
  message: Type.Optional(Type.String({ minLength: 1 })),
}

/** The channels that a message goes to, with their settings. Throws an AgentError that names an unknown one. */
export function chosenChannels<T>(configured: Record<string, T>, names = Object.keys(configured)): [string, T][] {
  return names.map(name => {
    if (Object.hasOwn(configured, name)) return [name, configured[name]!]
    throw new AgentError(`there is no channel ${name}`, {
      code: 'invalid_request',
      hint: `configured are ${Object.keys(configured).join(', ') || 'none'}`,
      sent: 'no',
    })
  })
}

/** The event in a sentence; of a phase that sends in the middle of a run: which run, and where it is. */
export function standardMessage({ event, run, phase }: AgentContext<unknown>): string {
  if (event) return event.message
  return `${run.team}: run ${run.name ? `${oneLine(run.name)} (${run.id})` : run.id} is running, phase ${phase.name}`
}
