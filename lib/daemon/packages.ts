// Installed packages: `<home>/packages/@scope/name/<version>/`, immutable once there. Where the daemon has a hub, the hub
// is asked first, for it knows of newer versions; what it sends is installed, so that later runs need no hub.

import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isSafeName } from '../agent/files.ts'
import { CadreError } from '../error.ts'
import type { Log } from '../log.ts'
import type { TeamPackage } from '../team/bundle.ts'

export interface Download {
  name: string
  version: string
  files: ReadonlyMap<string, Uint8Array>
}

const REFERENCE = /^(@[a-z0-9][a-z0-9-]{0,62}\/[a-z0-9][a-z0-9-]{0,62})(?:@([^@/\s]+))?$/

export class Packages {
  /** Set by the link: asks the hub for `@scope/name[@range]`; null when it has none that this daemon may have. */
  download: ((reference: string) => Promise<Download | null>) | null = null
  readonly #folder: string
  readonly #log: Log

  constructor(home: string, log: Log) {
    this.#folder = join(home, 'packages')
    this.#log = log
  }

  /** The newest version that fits the range; null when there is none. */
  async resolve(reference: string): Promise<TeamPackage | null> {
    const [, name, range = '*'] = REFERENCE.exec(reference) ?? []
    if (!name) throw new CadreError('invalid_request', `${reference}: expected @scope/name or @scope/name@range`)
    try {
      const found = await this.download?.(reference)
      if (found) return this.install(found)
    } catch (error) {
      this.#log.warn('the hub did not give a package; an installed version is used if there is one', {
        package: reference,
        error: (error as Error).message,
      })
    }
    const version = this.#versions(name)
      .filter(each => Bun.semver.satisfies(each, range))
      .sort(Bun.semver.order)
      .at(-1)
    return version === undefined ? null : { name, version, folder: this.#path(name, version) }
  }

  /** Puts a package in its place, whole or not at all. */
  install({ name, version, files }: Download): TeamPackage {
    const folder = this.#path(name, version)
    if (existsSync(folder)) return { name, version, folder }
    const draft = `${folder}.${crypto.randomUUID()}`
    try {
      for (const [path, bytes] of files) {
        if (!isSafeName(path))
          throw new CadreError('invalid_request', `${name}@${version}: ${path} is no safe file name`)
        mkdirSync(dirname(join(draft, path)), { recursive: true, mode: 0o700 })
        writeFileSync(join(draft, path), bytes, { flush: true })
      }
      renameSync(draft, folder)
    } finally {
      rmSync(draft, { recursive: true, force: true })
    }
    return { name, version, folder }
  }

  #versions(name: string): string[] {
    const folder = join(this.#folder, name)
    return existsSync(folder) ? readdirSync(folder).filter(each => /^\d+\.\d+\.\d+[\w.+-]*$/.test(each)) : []
  }

  #path(name: string, version: string): string {
    return join(this.#folder, name, version)
  }
}
