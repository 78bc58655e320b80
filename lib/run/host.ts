// What the engine asks of the daemon around it: agents with their settings, contexts to call them with, secrets.

import type { AgentContext, AgentDefinition, Effect, NotifyEvent } from '../agent/define.ts'
import type { SmallFile } from '../agent/files.ts'
import type { Bundle, BundleJson } from '../team/team.ts'
import type { RunPlace } from './attempt/places.ts'

/** What a call of an agent is bound to, beside the place of its run. */
export interface Binding {
  agent: string
  definition: AgentDefinition
  settings: Record<string, unknown>
  effect: Effect
  /** Idempotency key of the entry. */
  key: string
  signal: AbortSignal
}

export interface EngineHost {
  /** Definition and resolved settings of `issues` or `issues@eu`. Throws `invalid_request` when either is missing. */
  agent(
    reference: string,
    signal: AbortSignal,
  ): Promise<{ definition: AgentDefinition; settings: Record<string, unknown> }>
  /** An agent's context within a run. `small` takes small files, which are not synced then. */
  context(
    place: RunPlace,
    binding: Binding,
    more: { event?: NotifyEvent; small?: (file: SmallFile) => void },
  ): AgentContext
  /** Replaces secrets: those of the settings, and those given. */
  mask<T>(value: T, secrets: readonly string[]): T
  /** A named secret of the settings, as a team may read it. Throws `invalid_request` by name. */
  secret(name: string, team: { name: string; fromPath: boolean }, signal: AbortSignal): Promise<string>
  restoreBundle(id: string, json: BundleJson): Bundle
}
