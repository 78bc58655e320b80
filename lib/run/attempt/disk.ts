// The free space of the disk that holds the home. Below a floor no leaf phase starts and no job is claimed, so that
// what already runs can still be recorded. The space is measured every second.

import { statfs } from 'node:fs/promises'
import type { Log } from '../../log/log.ts'
import { sizeText } from '../../size.ts'

const FLOOR_BYTES = 64 * 1_048_576
/** On a small disk the floor is this fraction of the disk. */
const FLOOR_PART = 0.05
const MEASURE_MS = 1_000

/** Measures the free space, and says when there is too little and when there is enough again. */
export class DiskSpace {
  readonly #home: string
  readonly #log: Log
  readonly #onSpace: () => void
  #low: string | null = null
  #timer: Timer | undefined

  /** `onSpace` is called when there is enough space again. */
  constructor(home: string, log: Log, onSpace: () => void) {
    this.#home = home
    this.#log = log
    this.#onSpace = onSpace
  }

  /** How much space is lacking, in words; null while there is enough. */
  get low(): string | null {
    return this.#low
  }

  watch(): void {
    this.#timer = setInterval(() => void this.measure(), MEASURE_MS)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async measure(): Promise<void> {
    const low = await this.#lackOfSpace()
    const was = this.#low
    this.#low = low
    if (low && !was) this.#log.warn('the disk is nearly full: nothing new starts until there is space', { disk: low })
    if (was && !low) {
      this.#log.info('there is space on the disk again', { home: this.#home })
      this.#onSpace()
    }
  }

  async #lackOfSpace(): Promise<string | null> {
    try {
      const { bavail, blocks, bsize } = await statfs(this.#home)
      const floor = Math.min(FLOOR_BYTES, blocks * bsize * FLOOR_PART)
      if (bavail * bsize >= floor) return null
      return `${sizeText(bavail * bsize)} are free on the disk of ${this.#home}, ${sizeText(floor)} are needed`
    } catch {
      // A file system that does not report its free space must not stop the runs.
      return null
    }
  }
}
