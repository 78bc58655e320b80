// A step processes one run after a fact and does everything that the run can do now. Leaf phases start when their run
// has its turn for a slot; all other phases start at once.

import type { LiveRun } from '../../core/core.ts'
import { kindOf } from '../kinds/kinds.ts'
import { syncClocks } from '../phase/clocks.ts'
import { hasMapSlot } from '../phase/map-slots.ts'
import { decideWhens } from '../phase/phase-end.ts'
import { startAttempt } from '../phase/transition.ts'
import type { EngineState } from '../state/state.ts'
import { type EndingRuns, finishRun, recordEnds } from './finish.ts'
import { stopRun } from './stop.ts'

/** Takes the scheduled steps of a tree, as many as fit into one unit. The runs that end in them end together. */
export function takeSteps(engine: EngineState, root: string): void {
  const ending: EndingRuns = new Map()
  engine.agenda.takeSteps(
    root,
    live => step(engine, live, ending),
    () => recordEnds(engine, ending),
  )
}

/** Lets a tree reuse a slot within the unit that released it, as long as no other tree waits for one. */
export function reuseSlots(engine: EngineState, root: string): void {
  const { slots } = engine
  if (!slots.hasTurn || engine.world.paused()) return
  for (let live = slots.nextAlone(root); live; live = slots.nextAlone(root)) {
    // This only gives the run its turn. The slot is taken when its phase starts.
    slots.release()
    startLeaf(engine, live)
  }
}

/**
 * Uses the turn of a run. The run is given by its id, because it may have been read again since it asked for a slot.
 */
export function useSlotTurn(engine: EngineState, runId: string): void {
  const live = engine.lives.get(runId)
  if (live && startLeaf(engine, live)) takeSteps(engine, live.root)
}

/** Ignores a run that has ended or was read from the rows again since its step was scheduled. */
function step(engine: EngineState, live: LiveRun, ending: EndingRuns): void {
  if (engine.lives.get(live.id) !== live || ending.has(live)) return
  if (live.pendingStop) stopRun(engine, live, live.pendingStop)
  if (!decideWhens(engine, live)) return
  if ((live.proceeding.size > 0 || live.ready.length > 0) && hasMapSlot(engine, live)) {
    for (const position of [...live.proceeding]) {
      live.proceeding.delete(position)
      const phase = live.phase(position)
      kindOf(phase).subRuns!.proceed(engine, live, phase)
    }
    startReady(engine, live)
  }
  syncClocks(engine, live)
  if (live.ended === live.phases.length) finishRun(engine, live, ending)
}

/** Starts team, map and gate phases that are ready, and asks for slots for the others. In a drain nothing starts. */
function startReady(engine: EngineState, live: LiveRun): void {
  const limit = concurrencyOf(live)
  let leaves = 0
  for (const position of [...live.ready]) {
    if (live.running >= limit) break
    if (live.phase(position).isLeaf) leaves++
    else if (engine.world.draining()) continue
    else if (!engine.agenda.hasTime()) engine.agenda.add(live)
    else startPhase(engine, live, position)
  }
  if (leaves > 0 && live.running < limit) engine.slots.want(live.root, live)
  else engine.slots.drop(live)
}

/** Starts the next leaf phase that is ready. False when there is none, or the team's concurrency is used up. */
function startLeaf(engine: EngineState, live: LiveRun): boolean {
  const position = live.ready.find(position => live.phase(position).isLeaf)
  if (position === undefined || live.running >= concurrencyOf(live)) return false
  startPhase(engine, live, position)
  if (live.ready.length > 0) startReady(engine, live)
  return true
}

const concurrencyOf = ({ team }: LiveRun): number => team.concurrency ?? Number.POSITIVE_INFINITY

function startPhase(engine: EngineState, live: LiveRun, position: number): void {
  startAttempt(engine, live, position)
  const phase = live.phase(position)
  kindOf(phase).start(engine, live, phase)
}
