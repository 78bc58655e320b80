// The clock of a run, or of a team or map phase, that has a timeout. It runs towards a deadline, and is stopped while
// everything in progress waits for a person. Pure: both numbers are columns of the row, so the clock is the same after
// a restart.

export interface Clock {
  /** In the lived time of the home (store/lived.ts); set while the clock runs. */
  deadline: number | null
  /** Milliseconds that remain; set while the clock is stopped. */
  left: number | null
}

export const NO_CLOCK: Clock = { deadline: null, left: null }

export function startClock(timeout: number | undefined, now: number): Clock {
  return timeout === undefined ? NO_CLOCK : { deadline: now + timeout, left: null }
}

export function pause(clock: Clock, now: number): Clock {
  return clock.deadline === null ? clock : { deadline: null, left: Math.max(0, clock.deadline - now) }
}

export function resume(clock: Clock, now: number): Clock {
  return clock.left === null ? clock : { deadline: now + clock.left, left: null }
}

export function isDue(clock: Clock, now: number): boolean {
  return clock.deadline !== null && clock.deadline <= now
}
