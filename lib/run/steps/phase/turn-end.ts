// The end of a turn: a phase with `repeat` is done when its condition holds; otherwise it waits for its next turn, or
// fails after the last one. A phase without `repeat` has one turn, with which it ends.

import { CadreError } from '../../../error.ts'
import type { Json } from '../../../json.ts'
import type { Phase, Repeating, TurnResult } from '../../../team/team.ts'
import { JsonText, type LiveRun, type RunError, turnOfBound } from '../../core/core.ts'
import type { PhaseChange } from '../../store/store.ts'
import { failureOf } from '../state/fault.ts'
import { scopeOf } from '../state/scope.ts'
import type { EngineState } from '../state/state.ts'
import { endPhase, failPhase } from './phase-end.ts'
import { awaitTurn } from './transition.ts'

/** The phase has done everything once, with `result`. */
export function completeTurn(engine: EngineState, live: LiveRun, phase: Phase, result: PhaseChange): void {
  const { index, repeat } = phase
  const { turn } = live.phases[index]!
  if (!repeat || !turn) return endPhase(engine, live, index, 'completed', result)
  let isDone = false
  let failure: RunError | null = null
  try {
    isDone = holds(engine, live, repeat, result)
  } catch (thrown) {
    failure = failureOf(thrown)
  }
  if (isDone) return endPhase(engine, live, index, 'completed', result)
  engine.store.turns.end(live.id, index, turn.number, engine.world.now())
  turn.ended = true
  // The same result would fail again, so a resume begins with the next turn.
  if (failure) return failPhase(engine, live, index, failure)
  const ending = live.cancelRequest(index)
  if (ending) return endPhase(engine, live, index, 'cancelled', { reason: ending.reason })
  const { most, every, until } = repeat
  if (turnOfBound(turn.number, most) < most) {
    return awaitTurn(engine, live, index, engine.world.lived() + every)
  }
  const turns = most === 1 ? 'one turn' : `${most} turns`
  const message = `${until.place}: \`${until.source}\` was false after ${turns}, which are all that \`most\` allows`
  failPhase(engine, live, index, { code: 'repeat', message }, { reason: 'repeat' })
}

function holds(engine: EngineState, live: LiveRun, { until }: Repeating, result: PhaseChange): boolean {
  const value = until.evaluate({ ...scopeOf(engine, live), result: resultOf(result) })
  if (typeof value === 'boolean') return value
  throw new CadreError('invalid_request', `${until.place}: until must give a bool, got ${JSON.stringify(value)}`)
}

/** As it would be recorded, so that secrets are masked in it. */
const resultOf = ({ text, data, files }: PhaseChange): TurnResult => ({
  text: text ?? '',
  data: data instanceof JsonText ? (JSON.parse(data.text) as Json) : (data ?? null),
  files: [...(files ?? [])],
})
