// The small disk of the fault storm, and the people who free it: files of the storm itself, and what commands have left
// that were ended while they filled it. Nothing new begins while it is full.

import { existsSync, lstatSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Bytes of a file that only fills the disk. */
const LARGE = 1_000_000

export class StormDisk {
  readonly #home: string

  constructor(home: string) {
    this.#home = home
  }

  /** Room on the small disk: who keeps every run for ever has none for long. */
  get isCramped(): boolean {
    const { bavail, blocks } = statfsSync(this.#home)
    return bavail < blocks / 2
  }

  /** Leaves no space for so long. */
  async fill(ms: number): Promise<void> {
    try {
      // In smaller and smaller pieces, until nothing is left.
      for (let bytes = 8_000_000, n = 0; bytes > 1_000; n++) {
        try {
          writeFileSync(this.#filler(n), Buffer.alloc(bytes))
        } catch {
          bytes = Math.floor(bytes / 4)
        }
      }
    } finally {
      await Bun.sleep(ms)
      this.free()
    }
  }

  /** Removes what only fills the disk. */
  free(): void {
    for (let n = 0; existsSync(this.#filler(n)); n++) rmSync(this.#filler(n))
    const runs = join(this.#home, 'runs')
    for (const run of namesIn(runs)) {
      removeLarge(join(runs, run, 'work/filler'))
      for (const phase of namesIn(join(runs, run, 'files'))) removeLarge(join(runs, run, 'files', phase, 'x.txt'))
    }
  }

  #filler(n: number): string {
    return join(this.#home, `filler${n}`)
  }
}

/** The names in a folder, which may be missing, or unreadable, or something else. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function removeLarge(path: string): void {
  try {
    const found = lstatSync(path, { throwIfNoEntry: false })
    if (found?.isFile() && found.size > LARGE) rmSync(path)
  } catch {
    // Nobody may look into its folder.
  }
}
