// A small disk of a test's own that can be filled to the brim. Only root may mount one, and on Linux only.

import { mkdtempSync, readdirSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MIB = 1_048_576

export interface SmallDisk {
  path: string
  /** Takes all that is free, to the last page. */
  fill(): void
  /** Gives it back. */
  free(): void
  remove(): void
}

/** Null where none can be mounted. */
export function smallDisk(mib: number): SmallDisk | null {
  // Not a folder of the tests' own: those are removed before this disk is taken away.
  const path = mkdtempSync(join(tmpdir(), 'cadre-disk-'))
  const mount = () => Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', `size=${mib}m`, 'tmpfs', path]).success
  if (process.platform !== 'linux' || process.getuid?.() !== 0 || !mount()) {
    rmdirSync(path)
    console.log('skipped: a full disk (tmpfs can be mounted by root on Linux only)')
    return null
  }
  let count = 0
  return {
    path,
    fill() {
      for (const size of [MIB, 65_536, 4_096]) {
        try {
          for (;;) writeFileSync(join(path, `filler${count++}`), new Uint8Array(size))
        } catch {
          // What does not fit leaves a file that takes the rest.
        }
      }
    },
    free() {
      for (const name of readdirSync(path)) if (name.startsWith('filler')) rmSync(join(path, name))
    },
    remove() {
      Bun.spawnSync(['umount', '-l', path])
      rmdirSync(path)
    },
  }
}
