// Which phases of a run a new attempt repeats. This is the only place that decides it: the plan of a resume and the
// resume itself, at any depth, ask here. Pure: it knows the graph of the phases and how each of them ended.
//
// A plain resume repeats what did not complete. A phase that did not complete may be an outcome, which is not repeated by
// itself: a failure that was passed over, or a skip by `when`, on which something stands that completed or that a person
// skipped. `failed` also repeats everything that was passed over, and `from` a phase that is named.
//
// What is repeated is closed, without an exception: everything that depends on a repeated phase is repeated, too. That is
// why a completed `always` phase, which alone may have run behind a failure that blocks, runs again after that failure.

import { blocks, type PhaseState } from './states.ts'

/** A phase of a run that has ended. */
export interface EndedPhase {
  dependsOn: readonly number[]
  onFailure: 'fail' | 'continue' | 'escalate'
  isMap: boolean
  state: PhaseState
  reason: string | null
  /** It completed, although something below it failed and was passed over. */
  holdsFailures: boolean
}

/**
 * - `rest`: the phase has a new attempt. The runs below it that completed stay, and a map keeps its items.
 * - `renew`: the same, for a map that depends on something repeated: its items are evaluated again. An item that
 *   completed stays if its inputs are the same.
 * - `whole`: everything below the phase is repeated.
 */
export type Repetition = 'keep' | 'rest' | 'renew' | 'whole'

export interface Repeat {
  /** The position of the phase from which everything is repeated. */
  from: number | null
  failed: boolean
}

/** What happens to each phase, by its position. */
export function repetitions(phases: readonly EndedPhase[], { from, failed }: Repeat): Repetition[] {
  const before = phases.map(({ dependsOn }) => dependsOn)
  const after: number[][] = phases.map(() => [])
  for (const [at, { dependsOn }] of phases.entries()) for (const each of dependsOn) after[each]!.push(at)
  const where = (matches: (phase: EndedPhase) => boolean) =>
    new Set([...phases.keys()].filter(at => matches(phases[at]!)))

  const done = where(isDone)
  const stoodOn = beyond(done, before)
  const incomplete = where(phase => !isDone(phase))
  for (const at of incomplete) if (passesOn(phases[at]!) && stoodOn.has(at)) incomplete.delete(at)
  const passedOver = failed ? where(wasPassedOver) : new Set<number>()
  const named = new Set(from === null ? [] : [from])

  const asked = new Set([...incomplete, ...passedOver])
  const behindNamed = beyond(named, after)
  const behind = new Set([...beyond(asked, after), ...behindNamed])
  return phases.map(({ isMap }, at) => {
    if (named.has(at) || behindNamed.has(at)) return 'whole'
    if (!asked.has(at) && !behind.has(at)) return 'keep'
    if (isMap && behind.has(at)) return 'renew'
    return asked.has(at) || !done.has(at) ? 'rest' : 'whole'
  })
}

/** Whether a phase has a result, or a person has decided that it needs none. */
const isDone = ({ state, reason }: EndedPhase): boolean =>
  state === 'completed' || (state === 'skipped' && reason !== 'when' && reason !== 'upstream')

/** Whether a phase that did not complete has let the phases that depend on it run. */
const passesOn = ({ state, reason, onFailure }: EndedPhase): boolean => !blocks(state, reason, onFailure)

/** Whether a phase failed, or something below it did, and the run went on as if it had not. */
export const wasPassedOver = ({ state, onFailure, holdsFailures }: EndedPhase): boolean =>
  holdsFailures || (state === 'failed' && onFailure === 'continue')

/** What is reached from one of `first` by `edges`, in one step or more. */
function beyond(first: Iterable<number>, edges: readonly (readonly number[])[]): Set<number> {
  const found = new Set<number>()
  const open = [...first]
  for (const at of open) {
    for (const next of edges[at]!) {
      if (found.has(next)) continue
      found.add(next)
      open.push(next)
    }
  }
  return found
}
