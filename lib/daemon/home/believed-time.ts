// The time by which old things are deleted. A wall clock that has stepped ahead would make everything old, so it is
// believed only after an hour of life with it, or when a hub on another machine confirms it. Until then the believed time
// moves with the lived time. It never goes back. Pure.

/** How long a home has to live with a clock that is ahead, in all of its processes together, before it is believed. */
export const TRIAL_MS = 3_600_000
/** Wall clocks are corrected by less than this all the time. */
const SAME_MS = 1_000

/** Offsets are added to the lived time, in milliseconds. */
export interface Belief {
  /** The offset of the believed time. */
  offset: number
  /** A greater offset that the wall clock has shown without a break since the lived time was `since`. */
  trial: { offset: number; since: number } | null
}

export const believedAt = ({ offset }: Belief, lived: number): number => lived + offset

/** To be called from time to time with what the clocks show. Returns the same object where nothing has changed. */
export function looked(belief: Belief, wall: number, lived: number): Belief {
  const shown = wall - lived
  const { trial } = belief
  const isOver = trial !== null && shown >= trial.offset - SAME_MS && lived - trial.since >= TRIAL_MS
  const offset = isOver ? trial.offset : belief.offset
  if (shown < offset + SAME_MS) return trial === null ? belief : { offset, trial: null }
  // While a clock is on trial, a further step ahead is not: it gets an hour of its own afterwards. It may as well be that
  // no process ran in between.
  if (trial !== null && !isOver && shown >= trial.offset - SAME_MS) return belief
  return { offset, trial: { offset: shown, since: lived } }
}

/** Another machine shows the same time. Returns the same object where that was believed. */
export function confirmed(belief: Belief, wall: number, lived: number): Belief {
  const offset = wall - lived
  return offset < belief.offset + SAME_MS ? belief : { offset, trial: null }
}
