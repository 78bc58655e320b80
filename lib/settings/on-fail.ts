// Who is told of what fails, by the setting `notify.on_fail`: a list of "agent:channel", such as `chat:ops` or
// `email@eu:admins`. Pure.

import type { AgentDefinition } from '../agent/define.ts'
import { isObject, type Json } from '../json.ts'
import { didYouMean } from '../text/spelling.ts'
import { ACCOUNT } from '../wire/names.ts'
import { schemasAt } from './tree.ts'

/** An agent, perhaps with which account of it, and one of its channels. */
export interface Account {
  agent: string
  channel: string
}

const PATTERN = new RegExp(ACCOUNT, 'u')
const AT_MOST = 20

/** Null for a text that names no account. */
export function accountOf(text: string): Account | null {
  const [, agent, channel] = PATTERN.exec(text) ?? []
  return agent === undefined || channel === undefined ? null : { agent, channel }
}

/** The problem with the form of a list of accounts; null if there is none. */
export function onFailProblem(value: Json): string | null {
  if (!Array.isArray(value) || value.length > AT_MOST) {
    return `must be a list of at most ${AT_MOST} accounts "agent:channel", such as ["chat:ops"]`
  }
  const wrong = value.find(entry => typeof entry !== 'string' || accountOf(entry) === null)
  if (wrong !== undefined) return `${JSON.stringify(wrong)} must be an account "agent:channel", such as "chat:ops"`
  const twice = value.find((entry, at) => value.indexOf(entry) < at)
  return twice === undefined ? null : `${twice} is listed twice`
}

/** The accounts of a list; of a value of another form, none. */
export const accountsIn = (value: Json | undefined): Account[] =>
  value === undefined || onFailProblem(value) !== null ? [] : (value as string[]).map(text => accountOf(text)!)

/** Why an agent tells nobody of events; null if it does. */
export function whyMute(agent: string, { notify }: AgentDefinition): string | null {
  if (!notify) return `the agent ${agent} tells nobody of events`
  return schemasAt(notify.entry, ['channels']).length === 0 ? `the agent ${agent} has no channels to tell` : null
}

/** Why a channel is none of its agent's; null if it is one. `settings`: those of the agent, resolved. */
export function whyNoChannel({ agent, channel }: Account, settings: Json): string | null {
  const channels = isObject(settings) ? settings.channels : undefined
  // What a reference gives is known when it is used.
  if (channels !== undefined && !isObject(channels)) return null
  const known = Object.keys(channels ?? {})
  if (known.includes(channel)) return null
  const list = known.length === 0 ? 'it has none' : `it has ${known.join(', ')}`
  return `${agent} has no channel ${channel}: ${list}${didYouMean(channel, known)}`
}
