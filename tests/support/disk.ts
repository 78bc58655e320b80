// A small disk that a test can fill completely. Only root on Linux can mount one.

import { mkdtempSync, realpathSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface SmallDisk extends Disposable {
  readonly path: string
  /** Fills the disk, except for `spare` bytes. */
  fill(spare?: number): void
  /** Removes the file that fills the disk. */
  free(): void
  readonly(): void
}

const KIB = 1_024

function mount(path: string, options: string): boolean {
  return Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', options, 'tmpfs', path]).success
}

/** Mounts a small disk. Null where that is not possible. */
export function smallDisk(size = '8m'): SmallDisk | null {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null
  // Not made with `folder()`, because those folders are removed with their contents.
  const path = realpathSync(mkdtempSync(join(tmpdir(), 'cadre-disk-')))
  if (!mount(path, `size=${size},mode=700`)) {
    rmdirSync(path)
    return null
  }
  const fillers: string[] = []
  const put = (bytes: number): boolean => {
    const file = join(path, `.filler-${fillers.length}`)
    fillers.push(file)
    try {
      writeFileSync(file, new Uint8Array(bytes))
      return true
    } catch {
      return false
    }
  }
  const free = () => {
    for (const file of fillers.splice(0)) rmSync(file, { force: true })
  }
  return {
    path,
    fill(spare = 0) {
      if (spare > 0) writeFileSync(join(path, '.spare'), new Uint8Array(spare))
      while (put(256 * KIB));
      while (put(4 * KIB));
      rmSync(join(path, '.spare'), { force: true })
    },
    free,
    readonly() {
      if (!Bun.spawnSync(['mount', '-o', 'remount,ro', path]).success) throw new Error(`${path} cannot be remounted`)
    },
    [Symbol.dispose]() {
      // Processes that are still exiting keep the disk busy for a moment. A lazy unmount waits for them.
      Bun.spawnSync(['umount', '--lazy', path])
      rmdirSync(path)
    },
  }
}
