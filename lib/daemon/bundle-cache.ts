// Teams as they were last read: one whose files still say the same is not parsed, compiled and checked again.

import { readFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { Recent } from '../recent.ts'
import type { Bundle } from '../team/team.ts'
import { type LoadOptions, loadBundle, type TeamPackage } from '../team/team.ts'
import type { ResolvedPackage } from './packages.ts'

/** Bundles kept at most. */
const MOST = 200

export class Bundles {
  readonly #known = new Recent<string, Bundle>(MOST)
  /** Teams that are being read now. */
  readonly #reading = new Map<string, Promise<Bundle>>()

  /** Like `loadBundle`: throws `invalid_request` with every problem. */
  async load(from: string | ResolvedPackage, options: LoadOptions): Promise<Bundle> {
    const key = keyOf(from)
    for (;;) {
      const known = this.#known.get(key)
      if (known && (await isCurrent(known))) return known
      // A thousand starts of a new team wait for the first one, and then see whether the files still say the same.
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

/** By its hash where that is known: what was read of a version before it was judged may have been something else. */
function keyOf(from: string | ResolvedPackage): string {
  if (typeof from === 'string') return from
  const { name, version, sha256 = '' } = from
  return `${name}@${version} ${sha256}`
}

/** What a team names in another package is looked up each time, for a range may have got a newer version. */
function isChecked(bundle: Bundle, from: string | TeamPackage): boolean {
  const { teams } = bundle.json()
  if (typeof from === 'string') return Object.values(teams).every(({ folder }) => folder !== null)
  return Object.keys(teams).every(key => !key.startsWith('@'))
}

/** Files of a package never change. */
async function isCurrent(bundle: Bundle): Promise<boolean> {
  const same = Object.values(bundle.json().teams).map(async ({ folder, file, text }) => {
    if (folder === null) return true
    const found = await readFile(join(folder, basename(file)), 'utf8').catch(() => null)
    return found === text
  })
  return (await Promise.all(same)).every(Boolean)
}
