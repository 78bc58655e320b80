// The free space of the disk that holds the home, in bytes and in files. Below a floor no leaf phase starts and no job is
// claimed, so that what already runs can still be recorded. The space is measured every second.

import type { Log } from '../../log/log.ts'
import { lackOn } from '../files/files.ts'

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

  /** What is lacking, in words; null while there is enough. */
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
      return await lackOn(this.#home)
    } catch {
      // A file system that does not report its free space must not stop the runs.
      return null
    }
  }
}
