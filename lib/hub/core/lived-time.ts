// How the hub counts time, as a rule over one row of the database. Lived time moves only while a hub lives: a downtime, a
// pause of the process and a jump of the clock move it by nothing. All limits of runs, jobs and daemons count it. Pure.
//
// A look at the row moves lived time by the smaller of two: the step of the database's clock since the row was last moved,
// by whomever, and the time that the looker itself has lived since its own last look, by its monotonic clock. The first is
// small when another hub has just moved the row, so that no span counts twice. The second is small when the clock has
// jumped, or when no hub was there. A step back counts as nothing, and the row takes the earlier time as the one from which
// the next step is counted: what is lost is the time between two looks, and the looks after it move the row again. Only a
// clock that stands still, or is set back at every look, would stop lived time.
//
// Retention goes by the time that is believed. A clock that is behind it is believed at once, because an earlier time
// deletes nothing. A time ahead is a claim: it is believed when a hub has lived with it for an hour. A clock that jumps
// further meanwhile cannot hurry that, because the claim moves with lived time, and back with the clock. A new row believes
// nothing, so that the first sweep by age comes after an hour.
//
// What ends while the clock is behind a time that was believed is kept from that time, for the clock may be set right again.
// A hub that has lived an hour with a clock far behind believes that it was wrong before, and forgets that time. Should the
// clock jump far ahead after all, what ended since would look older than it is: such a jump is believed after thirty days.

/** How long a hub lives with a time before it is believed. */
export const BELIEVED_AFTER_MS = 3_600_000
/** How long a hub lives with a time that is far ahead, after it has believed that it was ahead before. */
const BELIEVED_AGAIN_AFTER_MS = 30 * 24 * 3_600_000
/** What a day changes in the age of records does not matter. */
const FAR_MS = 24 * 3_600_000
/** The value of `latest` when that was forgotten. */
const FORGOTTEN = -1
/** A clock that gains no more than this between two looks makes no claim. */
const SLACK_MS = 1_000

/** All in milliseconds. The columns of the table have the same names. */
export interface LivedTime {
  lived: number
  /** The database's clock when the row was last moved. */
  at: number
  /** The time that retention goes by; never ahead of the clock. */
  believed: number
  /** The latest time that was believed, which does not go back with the clock; 0: none yet; -1: it was forgotten. */
  latest: number
  claimed: number
  /** How long the claim was lived with. Below 0: how long the clock has been far behind `latest`. */
  claimed_for: number
}

/**
 * The row of a database that has none. Lived time begins as the time at which a hub was last known to serve it, so that
 * what earlier versions stored, in epoch milliseconds, keeps its meaning, even if the clock has jumped since.
 */
export function firstRow(clock: number, lastBeat: number | null): LivedTime {
  const lived = Math.min(clock, lastBeat ?? clock)
  return { lived, at: clock, believed: 0, latest: 0, claimed: clock, claimed_for: 0 }
}

/** The row after a look. `own` is how long the looker has lived since its last look; 0 for a new process. */
export function movedBy(row: LivedTime, clock: number, own: number): LivedTime {
  const passed = Math.floor(Math.max(0, Math.min(clock - row.at, own)))
  const expected = row.believed + passed
  const latest = row.latest > 0 ? row.latest + passed : row.latest
  const moved = { lived: row.lived + passed, at: clock, latest }
  if (clock <= expected + SLACK_MS) {
    const followed = { ...moved, believed: clock, claimed: clock }
    if (latest - clock <= FAR_MS) return { ...followed, claimed_for: 0 }
    const claimed_for = Math.min(0, row.claimed_for) - passed
    if (claimed_for > -BELIEVED_AFTER_MS) return { ...followed, claimed_for }
    return { ...followed, latest: FORGOTTEN, claimed_for: 0 }
  }
  // The clock was nowhere behind this since the claim began.
  const claimed = row.claimed_for <= 0 ? clock : Math.min(clock, row.claimed + passed)
  const claimed_for = Math.max(0, row.claimed_for) + passed
  const isFar = latest === FORGOTTEN && claimed - expected > FAR_MS
  if (claimed_for < (isFar ? BELIEVED_AGAIN_AFTER_MS : BELIEVED_AFTER_MS)) {
    return { ...moved, believed: expected, claimed, claimed_for }
  }
  return {
    ...moved,
    believed: claimed,
    latest: latestOf(latest, claimed, clock, isFar),
    claimed: clock,
    claimed_for: 0,
  }
}

/** The latest time when `claimed` has become believed. */
function latestOf(latest: number, claimed: number, clock: number, wasFar: boolean): number {
  // A further jump, which came meanwhile, has not been lived with for as long.
  if (latest === FORGOTTEN) return wasFar && clock - claimed <= FAR_MS ? claimed : FORGOTTEN
  return latest - claimed > FAR_MS ? FORGOTTEN : Math.max(latest, claimed)
}
