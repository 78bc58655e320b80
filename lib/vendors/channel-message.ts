// Shared by the agents that send messages to people: the selection of channels, and the default message.

import type { AgentContext } from '../agent/agent-context.ts'
import { AgentError } from '../agent/core/agent-error.ts'
import { Type } from '../schema/type.ts'
import { oneLine } from '../text/one-line.ts'

/** The fields of a message, both on a phase that sends one and in the options of a `notify` event. */
export const messageFields = {
  /** Names of channels in the settings; all of them when the field is absent. */
  channels: Type.Optional(
    Type.Array(Type.String({ minLength: 1 }), {
      minItems: 1,
      uniqueItems: true,
      description: 'Names of channels in the settings; all of them if it is left out.',
    }),
  ),
  subject: Type.Optional(
    Type.String({ minLength: 1, description: 'The subject; the event and the run if it is left out.' }),
  ),
  message: Type.Optional(
    Type.String({ minLength: 1, description: 'The text; a sentence about the event if it is left out.' }),
  ),
}

/**
 * The channels that a message goes to, with their settings. Throws an AgentError that names the first unknown channel.
 */
export function chosenChannels<T>(configured: Record<string, T>, names = Object.keys(configured)): [string, T][] {
  return names.map(name => {
    if (Object.hasOwn(configured, name)) return [name, configured[name]!]
    throw new AgentError(`there is no channel ${name}`, {
      code: 'invalid_request',
      hint: `the configured channels are ${Object.keys(configured).join(', ') || 'none'}`,
      sent: 'no',
    })
  })
}

/**
 * The default message: a sentence about the event, or, for a phase that sends during a run, the run and its current
 * phase.
 */
export function standardMessage({ event, run, phase }: AgentContext<unknown>): string {
  if (event) return event.message
  return `${run.team}: run ${run.name ? `${oneLine(run.name)} (${run.id})` : run.id} is running, phase ${phase.name}`
}
