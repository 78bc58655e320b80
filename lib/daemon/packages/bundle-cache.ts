// A cache of teams. A team whose files have not changed since it was last read is not parsed, compiled and checked
// again.

import { readFile, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Recent } from '../../recent.ts'
import { sharedLook } from '../../shared-look.ts'
import { type Bundle, type LoadOptions, loadBundle, type TeamPackage } from '../../team/team.ts'
import type { ResolvedPackage } from './packages.ts'

/** The maximum number of bundles. */
const MOST = 200
/** When runs start by the thousand, looking at the files for each of them would cost more than the start. */
const LOOK_PAUSE_MS = 2

export class Bundles {
  readonly #known = new Recent<string, Bundle>(MOST)
  /** The teams that are being read now. */
  readonly #reading = new Map<string, Promise<Bundle>>()
  readonly #isCurrent = sharedLook(isCurrent, LOOK_PAUSE_MS)

  /** Like `loadBundle`: throws `invalid_request` with every problem. */
  async load(from: string | ResolvedPackage, options: LoadOptions): Promise<Bundle> {
    const key = keyOf(from)
    for (;;) {
      const known = this.#known.get(key)
      if (known && (await this.#isCurrent(known))) return known
      // When a new team is started many times at once, all wait for the first read and then check whether the files
      // have changed.
      const other = this.#reading.get(key)
      const read = other && (await other.catch(() => null))
      if (!read || !isChecked(read, from)) break
    }
    const reading = loadBundle(from, options)
    this.#reading.set(key, reading)
    try {
      const bundle = await reading
      if (isChecked(bundle, from)) this.#known.set(key, bundle)
      else this.#known.delete(key)
      return bundle
    } finally {
      if (this.#reading.get(key) === reading) this.#reading.delete(key)
    }
  }
}

/**
 * The key of a package contains its hash where that is known, because a version that was read before its signature was
 * checked may have had other content.
 */
function keyOf(from: string | ResolvedPackage): string {
  if (typeof from === 'string') return from
  const { name, version, sha256 = '' } = from
  return `${name}@${version} ${sha256}`
}

/** Looks up again what a team names in other packages, because a range may match a newer version now. */
function isChecked(bundle: Bundle, from: string | TeamPackage): boolean {
  const { teams } = bundle.json()
  if (typeof from === 'string') return Object.values(teams).every(({ folder }) => folder !== null)
  return Object.keys(teams).every(key => !key.startsWith('@'))
}

/** Whether the files are unchanged. Files of a package never change. */
async function isCurrent(bundle: Bundle): Promise<boolean> {
  const same = Object.values(bundle.json().teams).map(async ({ folder, file, text }) => {
    if (folder === null) return true
    return (await textOf(join(folder, basename(file)))) === text
  })
  return (await Promise.all(same)).every(Boolean)
}

/** What is no regular file is not opened: it could be a pipe, which never ends. */
async function textOf(path: string): Promise<string | null> {
  try {
    return (await stat(path)).isFile() ? await readFile(path, 'utf8') : null
  } catch {
    return null
  }
}
