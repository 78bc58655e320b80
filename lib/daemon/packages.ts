// Installed packages: `<home>/packages/@scope/name/<version>/`, immutable once there. Where the daemon has a hub, the hub
// is asked for what is not pinned, for it knows of newer versions; what it sends is installed, so later runs need no hub.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { CadreError, messageOf } from '../error.ts'
import type { Log } from '../log.ts'
import { PackagePaths, packageDigest, problemWithPath } from '../package-files.ts'
import type { TeamPackage } from '../team/team.ts'
import { DownloadTeam } from '../wire/hub-calls.ts'
import type { Download } from '../wire/packages.ts'
import type { HubClient } from './hub-client.ts'

const REFERENCE = /^(@[a-z0-9][a-z0-9-]{0,62}\/[a-z0-9][a-z0-9-]{0,62})(?:@([^@/\s]+))?$/
const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/

export class Packages {
  /** Where packages come from, once the daemon has a hub. */
  source: { client: HubClient; token: string } | null = null
  readonly #folder: string
  readonly #log: Log

  constructor(home: string, log: Log) {
    this.#folder = join(home, 'packages')
    this.#log = log
  }

  /** The newest version that fits `@scope/name[@range]`; null when there is none. */
  async resolve(reference: string): Promise<TeamPackage | null> {
    const { name, range } = parse(reference)
    const pinned = VERSION.test(range) && this.#installed(name, range)
    if (pinned) return pinned
    try {
      if (this.source) return this.#install(await this.#download(reference))
    } catch (error) {
      const gone = error instanceof CadreError && error.code === 'not_found'
      if (!gone) this.#log.warn('the hub gave no package', { package: reference, error: messageOf(error) })
    }
    const newest = this.#versions(name)
      .filter(version => Bun.semver.satisfies(version, range))
      .sort(Bun.semver.order)
      .at(-1)
    return newest === undefined ? null : this.#installed(name, newest)
  }

  /** Has `@scope/name@version` in place with the content that was dispatched. Throws `conflict` when it differs. */
  async require(reference: string, sha256: string): Promise<void> {
    const { name, range: version } = parse(reference)
    if (!this.#installed(name, version)) this.#install(await this.#download(reference))
    const found = readFileSync(this.#digestFile(name, version), 'utf8')
    if (found === sha256) return
    throw new CadreError(
      'conflict',
      `${reference} is installed here with another content (${found.slice(0, 12)}…) than was dispatched (${sha256.slice(0, 12)}…)`,
    )
  }

  async #download(team: string): Promise<Download> {
    if (!this.source) throw new CadreError('unavailable', `${team} is not installed, and this daemon has no hub`)
    const { client, token } = this.source
    const found = await client.call(DownloadTeam, { team }, { token })
    checkDownload(parse(team).name, found)
    return found
  }

  /** Puts a checked package in its place, whole or not at all. What is there already stays as it is. */
  #install({ name, version, sha256, files }: Download): TeamPackage | null {
    const known = this.#installed(name, version)
    if (known) return known
    const folder = this.#path(name, version)
    const draft = `${folder}.${crypto.randomUUID()}`
    try {
      for (const { path, content_base64 } of files) {
        mkdirSync(dirname(join(draft, path)), { recursive: true, mode: 0o700 })
        writeFileSync(join(draft, path), Buffer.from(content_base64, 'base64'), { mode: 0o600, flush: true })
      }
      writeFileSync(this.#digestFile(name, version), sha256, { mode: 0o600, flush: true })
      renameSync(draft, folder)
    } finally {
      rmSync(draft, { recursive: true, force: true })
    }
    return { name, version, folder }
  }

  #installed(name: string, version: string): TeamPackage | null {
    const folder = this.#path(name, version)
    return existsSync(folder) ? { name, version, folder } : null
  }

  #versions(name: string): string[] {
    const folder = join(this.#folder, name)
    return existsSync(folder) ? readdirSync(folder).filter(entry => existsSync(join(folder, entry, 'team.yml'))) : []
  }

  #path(name: string, version: string): string {
    return join(this.#folder, name, version)
  }

  /** The hub's digest of a package, beside its folder. */
  #digestFile(name: string, version: string): string {
    return `${this.#path(name, version)}.sha256`
  }
}

function parse(reference: string): { name: string; range: string } {
  const [, name, range = '*'] = REFERENCE.exec(reference) ?? []
  if (name) return { name, range }
  throw new CadreError('invalid_request', `${reference}: expected @scope/name or @scope/name@range`)
}

/** Throws `conflict` for what is not the package that was asked for, byte for byte as the hub published it. */
function checkDownload(name: string, { name: given, version, sha256, files }: Download): void {
  const refuse = (why: string) => new CadreError('conflict', `the hub sent ${name} wrongly: ${why}`)
  if (given !== name) throw refuse(`it is ${given}`)
  if (!VERSION.test(version)) throw refuse(`its version is ${version}`)
  const paths = new PackagePaths()
  for (const { path } of files) {
    const problem = problemWithPath(path) ?? paths.add(path)
    if (problem) throw refuse(`${path} ${problem}`)
  }
  // Of the bytes that will be written, whatever text stood for them.
  const bytes = files.map(({ path, content_base64 }) => {
    return { path, content_base64: Buffer.from(content_base64, 'base64').toString('base64') }
  })
  if (packageDigest(bytes) !== sha256) throw refuse(`${given}@${version} does not have the SHA-256 that the hub names`)
}
