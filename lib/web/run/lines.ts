// The lines of a log, of one run or of a whole tree, each once and in the order in which they came. They are held in
// columns, because a million objects would take several times the memory.

import { signal } from '@preact/signals'
import type { LogLine, TreeLines } from '../../wire/records/run-records.ts'

export type Said = Omit<LogLine, 'seq'> & { run_id: string }

/** The list is drawn at most this often. */
const SOON_MS = 32
/** Lines of a block. */
const SIZE = 1_024

/** Who says lines, and how. */
type Voice = Pick<Said, 'run_id' | 'phase' | 'stream'>

/** Consecutive lines. The texts of a full block are one, so that the browser has few objects to look after. */
class Block {
  #open: string[] | null = []
  #text = ''
  readonly #ends = new Uint32Array(SIZE)
  readonly at = new Float64Array(SIZE)
  readonly voice = new Uint32Array(SIZE)
  count = 0

  add(text: string, at: number, voice: number): void {
    const index = this.count++
    this.#open!.push(text)
    this.#ends[index] = (index === 0 ? 0 : this.#ends[index - 1]!) + text.length
    this.at[index] = at
    this.voice[index] = voice
    if (this.count < SIZE) return
    this.#text = this.#open!.join('')
    this.#open = null
  }

  text(index: number): string {
    return this.#open
      ? this.#open[index]!
      : this.#text.slice(index === 0 ? 0 : this.#ends[index - 1], this.#ends[index])
  }
}

export class Lines {
  /** How many there are. It changes soon after lines were added, and not with each of them. */
  readonly count = signal(0)
  #telling: ReturnType<typeof setTimeout> | undefined
  readonly #blocks: Block[] = []
  #length = 0
  readonly #voices: Voice[] = []
  readonly #voiceOf = new Map<string, number>()
  readonly #fields = new Map<number, NonNullable<LogLine['fields']>>()
  /** The number of the last line, by run. */
  readonly #last = new Map<string, number>()

  last(runId: string): number {
    return this.#last.get(runId) ?? 0
  }

  /** Adds the lines that are not here yet. They are of one run and in order. */
  add({ run_id, lines }: TreeLines): void {
    let last = this.last(run_id)
    for (const { seq, text, at, phase, stream, fields } of lines) {
      if (seq <= last) continue
      last = seq
      if (fields) this.#fields.set(this.#length, fields)
      if (this.#length % SIZE === 0) this.#blocks.push(new Block())
      this.#blocks.at(-1)!.add(text, at, this.#voice({ run_id, phase, stream }))
      this.#length++
    }
    this.#last.set(run_id, last)
    this.#telling ??= setTimeout(() => this.tell(), SOON_MS)
  }

  tell(): void {
    clearTimeout(this.#telling)
    this.#telling = undefined
    this.count.value = this.#length
  }

  #voice(voice: Voice): number {
    const key = `${voice.run_id} ${voice.stream} ${voice.phase}`
    const known = this.#voiceOf.get(key) ?? this.#voices.push(voice) - 1
    this.#voiceOf.set(key, known)
    return known
  }

  at(index: number): Said | undefined {
    if (index >= this.#length) return undefined
    const block = this.#blocks[Math.floor(index / SIZE)]!
    const place = index % SIZE
    const fields = this.#fields.get(index)
    const voice = this.#voices[block.voice[place]!]!
    return { ...voice, text: block.text(place), at: block.at[place]!, ...(fields && { fields }) }
  }

  /** Whether a line is of this phase and has a text that fits; null asks for no phase or text. */
  fits(index: number, phase: string | null, text: RegExp | null): boolean {
    const block = this.#blocks[Math.floor(index / SIZE)]!
    const place = index % SIZE
    const isOf = phase === null || this.#voices[block.voice[place]!]!.phase === phase
    return isOf && (text === null || text.test(block.text(place)))
  }
}

/** How long a search may keep others waiting. */
const SLICE_MS = 8
/** Lines between two looks at the clock. */
const STRIDE = 2_000

/** The lines that fit a search, found a slice at a time, and those that come later, too. */
export class Search {
  readonly found: number[] = []
  readonly count = signal(0)
  readonly #lines: Lines
  readonly #phase: string | null
  readonly #text: RegExp | null
  #seen = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  readonly #unfollow: () => void

  constructor(lines: Lines, phase: string, text: string) {
    this.#lines = lines
    this.#phase = phase || null
    this.#text = text === '' ? null : new RegExp(text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i')
    // The first slice is looked through at once, so that no list without lines is drawn before it.
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
        if (this.#lines.fits(this.#seen, this.#phase, this.#text)) this.found.push(this.#seen)
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
