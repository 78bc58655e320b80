// A clock that counts from the start of the machine. It goes on while none of our processes runs, and setting the wall
// clock does not change it. Its times are comparable only within one boot.

import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { bootId } from '../../program/process.ts'
import { LONGEST_TIMER_MS, pause } from '../../wait.ts'

export interface BootClock {
  /** Tells one boot from another. */
  readonly boot: string
  /** Milliseconds since this boot. */
  now(): number
  /** Resolves after `ms`, or earlier when `signal` fires. */
  pause(ms: number, signal?: AbortSignal): Promise<void>
}

/**
 * The clock of this machine. Where the system has no such clock that outlives a process, each process counts as a boot
 * of its own.
 */
export function machineBootClock(): BootClock {
  const wait = (ms: number, signal?: AbortSignal) => pause(Math.min(ms, LONGEST_TIMER_MS), signal)
  if (process.platform === 'linux') return { boot: bootId(), now: uptime, pause: wait }
  return { boot: `${bootId()} ${randomUUID()}`, now: () => Math.round(performance.now()), pause: wait }
}

/** CLOCK_BOOTTIME, which counts while the machine sleeps: proc_uptime(5). */
const uptime = (): number => Math.round(Number(readFileSync('/proc/uptime', 'utf8').split(' ', 1)[0]) * 1_000)

/** A time of the clock of one boot, as a row keeps it. */
export interface Moment {
  boot: string | null
  at: number | null
}

/** How long ago `moment` was; null when that is not known, because it was in another boot. */
export function elapsedSince({ boot, at }: Moment, bootClock: BootClock): number | null {
  if (boot !== bootClock.boot || at === null) return null
  const passed = bootClock.now() - at
  // In a container the clock may have started again.
  return passed < 0 ? null : passed
}
