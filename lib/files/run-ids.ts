// The ids of new runs are sorted by when they were made: lists of runs are in the order of the ids, and `last` is the
// greatest. A clock that was ahead and is right again must not change that, so the time in an id is that of the clock or of
// the greatest id that is known, whichever is later. RFC 9562 allows it in section 6.2. It follows that the time in an id
// is not always when its run was made: the row of the run has that.

import type { RunId } from './run-id.ts'

/**
 * Ids from here on, of the year 2527 and later, are of no clock: somebody chose them. They are not followed, so that no
 * choice uses up the ids that are left.
 */
export const CHOSEN_FROM = '1'
const LATEST_MS = 0x0fff_ffff_ffff

/** How many ids one millisecond has. */
const NUMBERS = 0x1000

/** By how much an id of a hub is later at most than the one before, while the clock is behind. */
const ROOM_MS = 1_000

/** A run that nobody has dispatched is made at most so long after the time in its id. That of a dispatched one is its dispatch. */
const LATE_MS = 60_000

/** The least id that a run can have which was made at this moment or later. */
export function firstIdSince(since: number): string {
  const time = Math.max(0, since - LATE_MS)
    .toString(16)
    .padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}`
}

interface RunIdsOptions {
  /** Epoch milliseconds. */
  clock?: () => number
  /** Milliseconds from any start, which no step of the clock changes. */
  monotonic?: () => number
  /**
   * Whether ids are made at several places that follow this one, as daemons follow the ids of their hub. While the clock is
   * behind, an id then is later than the one before by half of the time that has passed, up to a second. The ids that
   * others made in between fit below it, and the clock catches up all the same.
   */
  leavesRoom?: boolean
}

export class RunIds {
  readonly #clock: () => number
  readonly #monotonic: () => number
  readonly #leavesRoom: boolean
  /** The time and the number in the greatest id. */
  #time = 0
  #number = 0
  #greatest = ''
  #madeAt = Number.NEGATIVE_INFINITY

  constructor(options: RunIdsOptions = {}) {
    const { clock = Date.now, monotonic = () => performance.now(), leavesRoom = false } = options
    this.#clock = clock
    this.#monotonic = monotonic
    this.#leavesRoom = leavesRoom
  }

  /** A UUID of version 7 that is greater than all that were made or noted here. */
  next(): RunId {
    const now = Math.min(Math.floor(this.#clock()), LATEST_MS)
    if (now > this.#time) this.#moveTo(now)
    else if (this.#room() > 0) this.#moveTo(this.#time + this.#room())
    else if (this.#number + 1 < NUMBERS) this.#number++
    else this.#moveTo(this.#time + 1)
    if (this.#leavesRoom) this.#madeAt = this.#monotonic()
    const time = this.#time.toString(16).padStart(12, '0')
    const number = this.#number.toString(16).padStart(3, '0')
    // A random UUID ends with the variant and 62 random bits, as this one does.
    const id = `${time.slice(0, 8)}-${time.slice(8)}-7${number}-${crypto.randomUUID().slice(19)}`
    this.#greatest = id
    return id as RunId
  }

  /** Ids that are made from now on are greater than this one, which another process made. */
  note(id: string): void {
    if (id <= this.#greatest || id >= CHOSEN_FROM || id[14] !== '7') return
    this.#greatest = id
    this.#time = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
    this.#number = Number.parseInt(id.slice(15, 18), 16)
  }

  #room(): number {
    if (!this.#leavesRoom) return 0
    return Math.floor(Math.min(ROOM_MS, (this.#monotonic() - this.#madeAt) / 2))
  }

  #moveTo(time: number): void {
    this.#time = time
    this.#number = 0
  }
}
