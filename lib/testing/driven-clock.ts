// A clock that a test drives, so that a minute costs no time.

/**
 * Time that passes only when the test says so.
 * @example
 * const clock = drivenClock()
 * using vendor = fakeVendor(routes, { clock })
 * await clock.advance(60_000)
 */
export interface DrivenClock {
  readonly boot: string
  /** Milliseconds since the clock was made. */
  now(): number
  /** Resolves once the clock has been driven `ms` further, or when `signal` fires. */
  pause(ms: number, signal?: AbortSignal): Promise<void>
  /** Lets `ms` pass. What waits goes on in the order of its times, each with time to do what follows. */
  advance(ms: number): Promise<void>
  /** Lets time pass until `work` has settled: whenever something waits, to the end of the shortest wait. */
  until<T>(work: Promise<T>): Promise<T>
}

interface Sleeper {
  at: number
  wake: () => void
}

/** Turns of the event loop for which everything else may go on before time passes. */
const TURNS = 40

const timer = () => new Promise<void>(resolve => setTimeout(resolve, 0))

/**
 * A clock at `start` milliseconds. `turn` lets others go on before time passes: by default for long enough that files are
 * written meanwhile.
 * @example
 * const clock = drivenClock()
 * await clock.advance(60_000)
 */
export function drivenClock(start = 0, turn: () => Promise<void> = timer): DrivenClock {
  let now = start
  const sleepers = new Set<Sleeper>()
  const earliest = () => [...sleepers].reduce<Sleeper | null>((a, b) => (a && a.at <= b.at ? a : b), null)
  const others = async () => {
    for (let n = 0; n < TURNS; n++) await turn()
  }
  const advanceTo = async (time: number) => {
    for (let next = earliest(); next && next.at <= time; next = earliest()) {
      now = Math.max(now, next.at)
      next.wake()
      await others()
    }
    now = Math.max(now, time)
  }
  return {
    boot: `driven ${crypto.randomUUID()}`,
    now: () => now,
    pause(ms, signal) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const sleeper = { at: now + ms, wake: () => {} }
      sleeper.wake = () => {
        sleepers.delete(sleeper)
        signal?.removeEventListener('abort', sleeper.wake)
        resolve()
      }
      sleepers.add(sleeper)
      signal?.addEventListener('abort', sleeper.wake)
      if (signal?.aborted) sleeper.wake()
      return promise
    },
    async advance(ms) {
      await others()
      await advanceTo(now + ms)
      await others()
    },
    async until(work) {
      let over = false
      const end = () => {
        over = true
      }
      work.then(end, end)
      while (!over) {
        await others()
        const next = earliest()
        if (!over && next) await advanceTo(next.at)
      }
      return work
    },
  }
}
