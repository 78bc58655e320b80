// Whether the disk of a SQLite database has room, as far as writes have shown. Nothing is tried while all writes succeed.

import { rm, writeFile } from 'node:fs/promises'
import { isDiskError } from '../open.ts'

/** With less free space than this, the database takes hardly any writes. */
const ROOM_BYTES = 1_048_576
/** How often a disk that was full is tried again, however often somebody asks. */
const LOOK_MS = 1_000

export class Disk {
  readonly #trial: string
  #isFull = false
  #lookedAt = 0

  /** `file` is the database. */
  constructor(file: string) {
    this.#trial = `${file}.trial`
  }

  /** Notes that a write failed. */
  failed(thrown: unknown): void {
    for (let error = thrown; error instanceof Error; error = error.cause) {
      if (isDiskError(error)) this.#isFull = true
    }
  }

  /** What keeps the database from taking writes, or null. After a write has failed, the disk is tried with a file. */
  async problem(): Promise<string | null> {
    const now = performance.now()
    if (this.#isFull && now - this.#lookedAt > LOOK_MS) {
      this.#lookedAt = now
      this.#isFull = !(await this.#hasRoom())
    }
    return this.#isFull ? 'the disk of the database takes no more writes' : null
  }

  async #hasRoom(): Promise<boolean> {
    try {
      await writeFile(this.#trial, new Uint8Array(ROOM_BYTES), { mode: 0o600, flush: true })
      return true
    } catch {
      return false
    } finally {
      await rm(this.#trial, { force: true }).catch(() => {})
    }
  }
}
