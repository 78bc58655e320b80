// The agents' side of a vendor's contract: the phases whose requests are compared with the vendor's document.

import type { Agent } from '../../lib/agent/define.ts'
import type { JsonObject } from '../../lib/json.ts'
import type { Change, Terms } from './recorder.ts'

export interface Case {
  title: string
  /** Name of an action; `source` or `target` of an agent that has none. */
  action: string
  /** Fields of the phase beside `name`, `agent` and `action`. */
  phase: JsonObject
  files?: Record<string, string>
  workspace?: () => string
  /** Settings beside the contract's. */
  settings?: Record<string, unknown>
  changes?: Readonly<Record<string, readonly Change[]>>
  /** All operations that are called, in this order. */
  calls: readonly string[]
  /** Of the phase at its end; default `completed`. */
  state?: 'failed' | 'awaiting_input'
}

export interface Contract extends Terms {
  /** In team.yml. */
  name: string
  agent: Agent
  settings(url: string): Record<string, unknown>
  cases: readonly Case[]
  /** What it asks about its credential. */
  doctor: Pick<Case, 'changes' | 'calls'>
}

/** The write was done, and its reply is lost: the agent has to look for it. */
export const LOST: Change = () => new Response('lost', { status: 500 })
