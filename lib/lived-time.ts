// Lived time: how long this process was at work. It moves with the monotonic clock, but a process that was stopped, on a
// machine that slept or was paused, has not lived meanwhile. Whatever decides about work by time counts lived time, so
// that no pause uses a limit up and no step of the wall clock moves one.
//
// Limits on work are `Limit`s. A timer of their own would fire before the event loop looks at sockets and processes, so
// after a pause it would win over a result that is there. A limit lets the loop look first.

import { LONGEST_TIMER_MS } from './wait.ts'

/** How often the monotonic clock is read. */
const BEAT_MS = 1_000
/** How much one look adds at most: a process that lives looks once a beat. */
export const MOST_A_LOOK_MS = 2_000
/** A look that comes later than this after the last one follows a pause. */
const PAUSE_MS = 1_500
/** A timer that rings later than this was held up, by a short pause or by other work, and its limit waits for results. */
const LATE_MS = 100
const LATE_GRACE_MS = 200
/**
 * How long results may come in before a limit expires after a pause. A result may need several turns until it is
 * recorded: output is read, files are looked at, a run ends and then the phase above it.
 */
const GRACE_MS = 2_000
/** A limit waits for results this often at most. */
const MOST_GRACES = 4

/** Counts the milliseconds that a process has lived. Pure: the monotonic clock is a parameter. */
export class LivedCount {
  #lived = 0
  #seen: number
  /** When the last pause was over. */
  pausedUntil = Number.NEGATIVE_INFINITY

  constructor(now: number) {
    this.#seen = now
  }

  at(now: number): number {
    if (now - this.#seen > PAUSE_MS) this.pausedUntil = now
    this.#lived += Math.min(Math.max(0, now - this.#seen), MOST_A_LOOK_MS)
    this.#seen = Math.max(this.#seen, now)
    return this.#lived
  }
}

let ofProcess: LivedCount | undefined

function countOfProcess(): LivedCount {
  if (ofProcess) return ofProcess
  const count = new LivedCount(performance.now())
  setInterval(() => count.at(performance.now()), BEAT_MS).unref()
  ofProcess = count
  return count
}

/** The milliseconds that this process has lived since it asked for the first time. */
export const livedMs = (): number => countOfProcess().at(performance.now())

/** Calls `expire` when `ms` of lived time are over, unless it is ended before. A result that is there comes first. */
export class Limit implements Disposable {
  readonly #due: number
  readonly #expire: () => void
  #timer: Timer | undefined
  #graces = 0
  #isOver = false
  #isUnreferenced = false

  constructor(ms: number, expire: () => void) {
    this.#due = livedMs() + ms
    this.#expire = expire
    if (ms !== Number.POSITIVE_INFINITY) this.#wait(ms)
  }

  /** Milliseconds that are left. */
  get left(): number {
    return Math.max(0, this.#due - livedMs())
  }

  /** The process may end before the limit does. */
  unref(): this {
    this.#isUnreferenced = true
    this.#timer?.unref()
    return this
  }

  end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }

  [Symbol.dispose](): void {
    this.end()
  }

  #wait(ms: number): void {
    const pause = Math.min(Math.max(0, Math.ceil(ms)), LONGEST_TIMER_MS)
    const planned = performance.now() + pause
    this.#timer = setTimeout(() => this.#ring(performance.now() - planned > LATE_MS), pause)
    if (this.#isUnreferenced) this.#timer.unref()
  }

  #ring(isLate: boolean): void {
    const left = this.#due - livedMs()
    if (left > 0) return this.#wait(left)
    const afterPause = countOfProcess().pausedUntil + GRACE_MS - performance.now()
    const grace = Math.max(afterPause, isLate ? LATE_GRACE_MS : 0)
    if (grace > 0 && this.#graces++ < MOST_GRACES) return this.#wait(grace)
    // Timers run before sockets are polled, and an immediate before the poll that follows it.
    setImmediate(() => setImmediate(() => !this.#isOver && this.#expire()))
  }
}

/**
 * A signal that fires with a TimeoutError when `ms` of lived time are over, unless it is disposed of before. The process
 * may end before it fires.
 */
export function limitSignal(ms: number): Disposable & { readonly signal: AbortSignal } {
  const controller = new AbortController()
  const expire = () => controller.abort(new DOMException('The operation timed out.', 'TimeoutError'))
  const limit = new Limit(ms, expire).unref()
  return { signal: controller.signal, [Symbol.dispose]: () => limit.end() }
}
