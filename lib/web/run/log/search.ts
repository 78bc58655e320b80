// The lines of a log that are shown: those of a phase, of a time, or with a text.

import { signal } from '@preact/signals'
import type { Lines, Wanted } from './lines.ts'

/** How long a search may block the page. */
const SLICE_MS = 8
/** Lines between two looks at the clock. */
const STRIDE = 2_000

/** Finds the lines that fit a search, in slices of time, and goes on with lines that come later. */
export class Search {
  readonly found: number[] = []
  readonly count = signal(0)
  readonly #lines: Lines
  readonly #wanted: Wanted
  #seen = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #unfollow: () => void

  /** An empty phase or text is any. */
  constructor(lines: Lines, phase: string, text: string, { from = 0, until = Number.POSITIVE_INFINITY } = {}) {
    this.#lines = lines
    const pattern = text === '' ? null : new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i')
    this.#wanted = { phase: phase || null, text: pattern, from, until }
    // The first slice is searched at once, so that the page does not show an empty list before it.
    this.#look()
    this.#unfollow = lines.count.subscribe(() => {
      this.#timer ??= setTimeout(() => this.#look())
    })
  }

  #look(): void {
    const until = performance.now() + SLICE_MS
    const end = this.#lines.count.peek()
    while (this.#seen < end && performance.now() < until) {
      const stop = Math.min(end, this.#seen + STRIDE)
      for (; this.#seen < stop; this.#seen++) {
        if (this.#lines.fits(this.#seen, this.#wanted)) this.found.push(this.#seen)
      }
    }
    this.count.value = this.found.length
    this.#timer = this.#seen < end ? setTimeout(() => this.#look()) : undefined
  }

  stop(): void {
    this.#unfollow()
    clearTimeout(this.#timer)
  }
}
