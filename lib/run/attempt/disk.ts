// The free space of the disk that holds the home. Below a floor no phase begins and no job is claimed: what runs may still
// end, and what waits is not lost to a disk that is about to be full. It is looked at again every second.

import { statfs } from 'node:fs/promises'
import type { Log } from '../../log.ts'
import { sizeText } from '../../size.ts'

const FLOOR_BYTES = 64 * 1_048_576
/** On a small disk the floor is this part of it. */
const FLOOR_PART = 0.05
const LOOK_MS = 1_000

/** Looks at the disk, now and every second. */
export class DiskSpace {
  readonly #home: string
  readonly #log: Log
  readonly #onSpace: () => void
  #low: string | null = null
  #timer: Timer | undefined

  /** `onSpace` is called when there is enough again. */
  constructor(home: string, log: Log, onSpace: () => void) {
    this.#home = home
    this.#log = log
    this.#onSpace = onSpace
  }

  /** What is too little, in words; null while there is enough. */
  get low(): string | null {
    return this.#low
  }

  watch(): void {
    this.#timer = setInterval(() => void this.look(), LOOK_MS)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  async look(): Promise<void> {
    const low = await this.#measure()
    const was = this.#low
    this.#low = low
    if (low && !was) this.#log.warn('the disk is nearly full: nothing new begins until there is space', { disk: low })
    if (was && !low) {
      this.#log.info('there is space on the disk again', { home: this.#home })
      this.#onSpace()
    }
  }

  async #measure(): Promise<string | null> {
    try {
      const { bavail, blocks, bsize } = await statfs(this.#home)
      const floor = Math.min(FLOOR_BYTES, blocks * bsize * FLOOR_PART)
      if (bavail * bsize >= floor) return null
      return `${sizeText(bavail * bsize)} are free on the disk of ${this.#home}, ${sizeText(floor)} are needed`
    } catch {
      // A file system that does not tell is not held against its runs.
      return null
    }
  }
}
