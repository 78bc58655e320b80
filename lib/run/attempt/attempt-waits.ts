// How an attempt waits: for another system to settle, for the limits of its phase, and for the slot with which it then goes
// on. Each wait is shown, and none of them uses up the time of the attempt.

import type { RunId } from '../../files/run-id.ts'
import type { Masked, MaskedText } from '../../secrets/masked.ts'
import type { LiveRun } from '../core/core.ts'
import { endSettling, type Machine, startPacing, startSettling } from '../steps/steps.ts'
import type { AttemptClock } from './attempt-clock.ts'
import type { AttemptServices } from './execute.ts'
import type { SettlingWait } from './ledger.ts'
import { limitText, type PaceLimit, type Paces } from './paces.ts'

/** What an agent waits for. */
export interface Wait {
  reason: MaskedText
  until: Date | undefined
}

/** An attempt that is executed. */
export interface Running {
  /** Aborts the agent, because of a cancel, the stop of the daemon, or the clock. */
  controller: AbortController
  /** Aborts also what continues after the time of the attempt is over. */
  stop: AbortController
  clock: AttemptClock
  /** Why the attempt waits for another system to settle; null while it does not. */
  settling: Wait | null
  /** The limit for which the attempt waits; null while it does not. */
  pacing: Wait | null
  /** The limits for which requests wait that are sent again. */
  repeating: Set<Wait>
  /** What the agent says that it waits for, in the order in which the waits began. */
  waits: readonly Wait[]
  /** Ends the wait for the slot with which the attempt continues. */
  endSlotWait: () => void
}

interface Parts {
  machine: Machine
  paces: Paces
  /** Applies a change to a tree; the promise settles once it is on disk. */
  write<T>(root: RunId, apply: () => T): Promise<T>
}

interface Waiting {
  live: LiveRun
  position: number
  attempt: number
  running: Running
  mask: <T>(value: T) => Masked<T>
}

export function waitsOf(parts: Parts, waiting: Waiting): Pick<AttemptServices, 'settling' | 'mayBegin' | 'mayRepeat'> {
  const settling = settlingOf(parts, waiting)
  const limits = limitsOf(waiting.live, waiting.position)
  if (limits.length === 0) return { settling, mayBegin: null, mayRepeat: null }
  const reason = waiting.mask(limits.map(limitText).join(', '))
  return {
    settling,
    mayBegin: beginningOf(parts, waiting, limits, reason),
    mayRepeat: repeatingOf(parts, waiting, limits, reason),
  }
}

/** How an attempt waits for another system to settle: without its slot, and without using up its time. */
function settlingOf({ machine, write }: Parts, waiting: Waiting): SettlingWait {
  const { live, position, attempt, running, mask } = waiting
  const { id, root } = live
  return {
    stopClock: () => running.clock.stop('settling'),
    show: async (reason, until) => {
      const isFirst = running.settling === null
      const wait = { reason: mask(reason), until }
      if (!isFirst) {
        running.settling = wait
        return
      }
      await write(root, () => {
        if (startSettling(machine, id, position, attempt)) running.settling = wait
      })
    },
    end: async () => {
      if (running.settling !== null) {
        await slotAgain(machine, waiting, live => {
          running.settling = null
          live?.settling.delete(position)
        })
        await write(root, () => {
          const live = machine.live(id, position, attempt)
          if (live) endSettling(machine, live)
        })
      }
      running.clock.continue('settling')
    },
  }
}

/**
 * How an attempt waits until limits let its next entry begin: without its slot, so that the entries that wait keep no
 * other run waiting, and without using up its time.
 */
function beginningOf(
  { machine, paces, write }: Parts,
  waiting: Waiting,
  limits: readonly PaceLimit[],
  reason: MaskedText,
): () => Promise<void> {
  const { live, position, attempt, running } = waiting
  const { signal } = running.controller
  return async () => {
    if (paces.begin(limits)) return
    const granted = paces.wait(limits, signal)
    running.clock.stop(granted)
    try {
      await write(live.root, () => {
        if (startPacing(machine, live.id, position, attempt)) running.pacing = { reason, until: undefined }
      })
      const turn = await granted
      await slotAgain(machine, waiting, now => {
        running.pacing = null
        now?.paced.delete(position)
      })
      if (signal.aborted) turn.drop()
      else turn.begin()
      signal.throwIfAborted()
    } finally {
      // Has no effect once the entry has begun.
      granted.then(turn => turn.drop()).catch(() => {})
      running.pacing = null
      running.clock.continue(granted)
    }
  }
}

/**
 * A request that is sent again counts like an entry that begins: what an API has refused because it was too much would
 * otherwise come on top of the next ones, and be too much again. The attempt keeps its slot, as in the wait before, but
 * does not use up its time.
 */
function repeatingOf(
  { paces }: Parts,
  { running }: Waiting,
  limits: readonly PaceLimit[],
  reason: MaskedText,
): (signal: AbortSignal) => Promise<void> {
  return async signal => {
    if (paces.begin(limits)) return
    const wait = { reason, until: undefined }
    running.repeating.add(wait)
    running.clock.stop(wait)
    try {
      ;(await paces.wait(limits, signal)).begin()
    } finally {
      running.repeating.delete(wait)
      running.clock.continue(wait)
    }
  }
}

/** Waits for a slot with which an attempt goes on that has given its own back. `goesOn` is called when it has one. */
async function slotAgain(
  machine: Machine,
  { live: { id }, position, attempt, running }: Waiting,
  goesOn: (live: LiveRun | null) => void,
): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const left = machine.slots.takeBack(() => {
    const live = machine.live(id, position, attempt)
    goesOn(live)
    if (!live) machine.slots.release()
    resolve()
  })
  running.endSlotWait = () => void (left() && resolve())
  if (running.stop.signal.aborted) running.endSlotWait()
  await promise
}

/** The limits of a phase and of the phases above it. */
function limitsOf(live: LiveRun, position: number): PaceLimit[] {
  const limits: PaceLimit[] = []
  for (let run: LiveRun | null = live, at = position; run; at = run.row.parent_position!, run = run.parent) {
    const { limit, name } = run.phase(at)
    if (limit) limits.push({ key: `${run.id}:${at}`, name, ...limit })
  }
  return limits
}
