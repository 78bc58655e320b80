// `resume` and `planResume` as the engine's second design takes them. The first design knows `from` alone: what else is
// asked of it is left out there.

import type { JsonObject } from '../../lib/json.ts'
import type { Engine } from '../../lib/run/engine.ts'

export interface Resuming {
  from?: string | null
  failed?: boolean
  inputs?: JsonObject
}

/** The second design can be told which runs to recover. */
const isSecond = ({ recover }: Engine) => recover.length > 0
// biome-ignore lint/suspicious/noExplicitAny: one of two types, as the design goes.
const asked = (engine: Engine, given: Resuming): any => (isSecond(engine) ? given : (given.from ?? null))

export function resume(engine: Engine, runId: string, given: Resuming = {}): ReturnType<Engine['resume']> {
  return engine.resume(runId, asked(engine, given))
}

export function planResume(engine: Engine, runId: string, given: Resuming = {}): ReturnType<Engine['planResume']> {
  return engine.planResume(runId, asked(engine, given))
}
