// A step processes one run after a fact and does everything that the run can do now. Leaf phases start when their run
// has its turn for a slot; all other phases start at once.

import { isLeaf, type LiveRun } from '../../core/core.ts'
import { conclude } from '../kinds/conclude.ts'
import { finish } from '../kinds/finish.ts'
import { proceed, startMap } from '../kinds/map.ts'
import { decideWhens } from '../kinds/settle.ts'
import { stopRun } from '../kinds/stop.ts'
import { startTeam } from '../kinds/team.ts'
import { hasPlace } from '../state/map-slots.ts'
import type { Work } from '../state/state.ts'
import { beginAttempt } from '../state/transition.ts'
import { keepTime } from '../state/waiting.ts'

/** Takes the scheduled steps of a tree, as many as fit into one unit. */
export function follow(work: Work, root: string): void {
  work.agenda.takeSteps(root, live => step(work, live))
}

/** Lets a tree reuse a slot within the unit that released it, as long as no other tree waits for one. */
export function useSlots(work: Work, root: string): void {
  const { slots } = work
  if (!slots.hasTurn || work.world.paused()) return
  for (let live = slots.nextAlone(root); live; live = slots.nextAlone(root)) {
    // This only gives the run its turn. The slot is taken when its phase begins.
    slots.release()
    startLeaf(work, live)
  }
}

/**
 * Uses the turn of a run. The run is given by its id, because it may have been read again since it asked for a slot.
 */
export function useTurn(work: Work, runId: string): void {
  const live = work.lives.get(runId)
  if (live && startLeaf(work, live)) follow(work, live.root)
}

/** Ignores a run that has ended or was read from the rows again since its step was scheduled. */
function step(work: Work, live: LiveRun): void {
  if (work.lives.get(live.id) !== live) return
  if (live.stop) stopRun(work, live, live.stop)
  if (!decideWhens(work, live)) return
  if ((live.proceeding.size > 0 || live.ready.length > 0) && hasPlace(work, live)) {
    for (const position of [...live.proceeding]) {
      live.proceeding.delete(position)
      const phase = live.phase(position)
      if (phase.type === 'map') proceed(work, live, phase)
    }
    startReady(work, live)
  }
  keepTime(work, live)
  if (live.ended === live.phases.length) finish(work, live)
}

/** Starts team, map and gate phases that are ready, and asks for slots for the others. */
function startReady(work: Work, live: LiveRun): void {
  const limit = concurrencyOf(live)
  let leaves = 0
  for (const position of [...live.ready]) {
    if (live.running >= limit) break
    if (isLeaf(live.phase(position))) leaves++
    else if (!work.agenda.mayBegin()) work.agenda.add(live)
    else start(work, live, position)
  }
  if (leaves > 0 && live.running < limit) work.slots.want(live.root, live)
  else work.slots.drop(live)
}

/** Starts the next leaf phase that is ready. False when there is none, or the team's concurrency is used up. */
function startLeaf(work: Work, live: LiveRun): boolean {
  const position = live.ready.find(position => isLeaf(live.phase(position)))
  if (position === undefined || live.running >= concurrencyOf(live)) return false
  start(work, live, position)
  if (live.ready.length > 0) startReady(work, live)
  return true
}

const concurrencyOf = ({ team }: LiveRun): number => team.concurrency ?? Number.POSITIVE_INFINITY

function start(work: Work, live: LiveRun, position: number): void {
  beginAttempt(work, live, position)
  const phase = live.phase(position)
  const { attempt } = live.phases[position]!
  if (isLeaf(phase)) work.notes.after({ kind: 'launch', runId: live.id, position, attempt })
  else if (phase.type === 'gate') conclude(work, live, position, { kind: 'completed' })
  else if (phase.type === 'team') startTeam(work, live, phase)
  else if (phase.type === 'map') startMap(work, live, phase)
}
