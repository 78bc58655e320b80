// The files of a published team, as the hub and the daemon exchange them: which names are allowed, and their digest.

import { isSafeName } from '../../files/file-name.ts'
import type { PackageFile } from './packages.ts'

/** The SHA-256 of a package in hexadecimal. `files` must be in the hub's order, which is by path. */
export function packageDigest(files: readonly PackageFile[]): string {
  const plain = files.map(({ path, content_base64 }) => ({ path, content_base64 }))
  return new Bun.CryptoHasher('sha256').update(JSON.stringify(plain)).digest('hex')
}

/** The order of the hub. */
export function inOrder(files: readonly PackageFile[]): PackageFile[] {
  return [...files].sort((a, b) => (a.path < b.path ? -1 : 1))
}

/** Which files of a package are teams. */
export const TEAM_FILE = /(^|\/)team\.ya?ml$/

/** A file of a package that is published for `scope`: in a team that takes the place of `@local`. */
export function inScope(path: string, content: Uint8Array, scope: string): Uint8Array {
  if (!TEAM_FILE.test(path)) return content
  return Buffer.from(Buffer.from(content).toString('latin1').replaceAll('@local/', `@${scope}/`), 'latin1')
}

const PLAIN_PATH = /^[A-Za-z0-9._@+ -]+(\/[A-Za-z0-9._@+ -]+)*$/
const LONGEST_PATH = 400

/** The problem with a file name by itself; null if there is none. */
export function problemWithPath(path: string): string | null {
  const fits = path.length <= LONGEST_PATH && PLAIN_PATH.test(path) && isSafeName(path)
  return fits ? null : 'must be a relative path inside the package, of plain names that do not begin with a dash'
}

/** Finds paths of one package that conflict with each other, also on a file system that ignores case. */
export class PackagePaths {
  /** Each path and each folder above it, by its lower-case form. */
  readonly #taken = new Map<string, { path: string; kind: 'file' | 'folder' }>()

  /** Adds the path. Returns the conflict with an earlier path, or null. */
  add(path: string): string | null {
    const parts = path.split('/')
    for (let length = 1; length <= parts.length; length++) {
      const part = parts.slice(0, length).join('/')
      const kind = length === parts.length ? 'file' : 'folder'
      const known = this.#taken.get(part.toLowerCase())
      if (known === undefined) this.#taken.set(part.toLowerCase(), { path: part, kind })
      else if (known.path !== part) return `differs from ${known.path} only in upper and lower case`
      else if (known.kind !== kind) return `${part} is both a file and a folder`
      else if (kind === 'file') return 'is in the package twice'
    }
    return null
  }
}
