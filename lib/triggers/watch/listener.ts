// Tells when something happens in the folders of a watch. It only says that a look is worth while: what it misses, as on
// network folders, the next look finds that comes anyway.

import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'

/** The kernel hands out only so many, and other programs want some. Folders beyond these are looked at anyway. */
const MOST_FOLDERS = 200

interface Heard {
  identity: string
  watcher: FSWatcher
}

export class FolderListener {
  readonly #folders = new Map<string, Heard>()
  readonly #heard: () => void
  readonly #failed: (error: unknown) => void

  /** `failed`: a folder cannot be listened to. */
  constructor(heard: () => void, failed: (error: unknown) => void) {
    this.#heard = heard
    this.#failed = failed
  }

  /** Listens to these folders of `root` and to no others. True when one is new, where something may have happened already. */
  follow(root: string, folders: ReadonlyMap<string, string>): boolean {
    const wanted = new Map(
      Array.from(folders)
        .slice(0, MOST_FOLDERS)
        .map(([path, identity]) => [join(root, path), identity]),
    )
    for (const [path, { identity }] of this.#folders) if (wanted.get(path) !== identity) this.#drop(path)
    let isNew = false
    for (const [path, identity] of wanted) {
      if (this.#folders.has(path)) continue
      const watcher = this.#open(path)
      if (!watcher) continue
      this.#folders.set(path, { identity, watcher })
      isNew = true
    }
    return isNew
  }

  close(): void {
    for (const path of this.#folders.keys()) this.#drop(path)
  }

  #open(path: string): FSWatcher | null {
    try {
      const watcher = watch(path, { persistent: false }, this.#heard)
      watcher.on('error', error => {
        this.#drop(path)
        this.#failed(error)
      })
      return watcher
    } catch (error) {
      this.#failed(error)
      return null
    }
  }

  #drop(path: string): void {
    this.#folders.get(path)?.watcher.close()
    this.#folders.delete(path)
  }
}
