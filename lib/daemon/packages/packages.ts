// Installed packages: `<home>/packages/@scope/name/<version>/`, which never change once they are installed. In
// an enrolled home the hub is asked for every reference that is not pinned, because the hub may have newer versions.
// What the hub sends is installed, so later runs need no hub. A package that `packages.trust` does not accept is
// neither installed nor used, even if it was installed before.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import { CadreError, messageOf } from '../../error.ts'
import type { Json } from '../../json.ts'
import type { Log } from '../../log/log.ts'
import { matches } from '../../schema/schema.ts'
import { trustsName, whyUntrusted } from '../../settings/settings.ts'
import type { Bundle, TeamPackage } from '../../team/team.ts'
import { refuseInPlace } from '../../wire/in-place.ts'
import { inOrder, PackagePaths, packageDigest, problemWithPath } from '../../wire/records/package-files.ts'
import type { SignedPackage } from '../../wire/records/package-signature.ts'
import { type Download, type PackageFile, PackageSignature } from '../../wire/records/packages.ts'

const REFERENCE = /^(@[a-z0-9][a-z0-9-]{0,62}\/[a-z0-9][a-z0-9-]{0,62})(?:@([^@/\s]+))?$/
const TEAM_FILE = 'team.yml'
const utf8 = new TextDecoder()
const VERSION = /^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$/
const LONGEST_VERSION = 100

declare const brand: unique symbol
/** `@scope/name`, read. With a `Version` it is the path of a package; no other text becomes part of that path. */
type Name = string & { readonly [brand]: 'Name' }
/** One version, read; not a range. */
type Version = string & { readonly [brand]: 'Version' }

const isVersion = (text: string): text is Version => text.length <= LONGEST_VERSION && VERSION.test(text)

/** A package to load. `sha256` is the digest of its content, if that was computed. */
export type ResolvedPackage = TeamPackage & { sha256?: string }

/** Where packages come from. */
export interface PackageSource {
  /** The package that `@scope/name[@range]` means. Throws the hub's error, or `unavailable`. */
  download(team: string): Promise<Download>
}

interface Installed {
  name: Name
  version: Version
  folder: string
}

export class Packages {
  /** Null as long as there is no hub, or nobody has looked for one. */
  source: PackageSource | null = null
  /** Called when a package is wanted while there is no `source`. */
  findSource: () => Promise<PackageSource | null> = async () => null
  readonly #folder: string
  readonly #trust: () => Json | undefined
  readonly #log: Log

  /** `trust` reads the present value of the setting `packages.trust`. */
  constructor(home: string, { trust, log }: { trust: () => Json | undefined; log: Log }) {
    this.#folder = join(home, 'packages')
    this.#trust = trust
    this.#log = log
  }

  /**
   * The newest version that fits `@scope/name[@range]`, or null when there is none. Throws `forbidden` if it is not
   * trusted, and `unavailable` when none is installed and the hub did not say whether it has one.
   */
  async resolve(reference: string): Promise<ResolvedPackage | null> {
    const { name, range } = parse(reference)
    const pinned = isVersion(range) && this.#installed(name, range)
    if (pinned) return this.#judged(pinned)
    const { sent, unreached } = await this.#sent(reference)
    if (sent) return this.#judged(this.#install(sent))
    const newest = this.#versions(name)
      .filter(version => Bun.semver.satisfies(version, range))
      .sort(Bun.semver.order)
      .at(-1)
    if (newest === undefined) {
      if (unreached === null) return null
      throw new CadreError('unavailable', `${reference} is not installed here, and ${unreached}`)
    }
    if (unreached !== null) this.#warn(reference, unreached)
    return this.#judged(this.#installed(name, newest)!)
  }

  /**
   * Makes sure that `@scope/name@version` is installed with the content that was dispatched. Throws `conflict` when the
   * content differs, and `forbidden` when it is not trusted.
   */
  async require(reference: string, sha256: string): Promise<void> {
    const { name, version } = onlyOne(reference)
    const known = this.#installed(name, version)
    if (known) await this.#judged(known)
    else this.#install(await this.#download(reference))
    const found = readFileSync(this.#digestFile(name, version), 'utf8')
    if (found === sha256) return
    throw new CadreError(
      'conflict',
      `${reference} is installed here with another content (${found.slice(0, 12)}…) than was dispatched (${sha256.slice(0, 12)}…)`,
    )
  }

  /**
   * Makes sure that a run may go on with the teams of its packages, which were frozen when it began. Throws `forbidden`
   * when one of the packages is not trusted now, or is not the one that the run began with.
   */
  async judge(bundle: Bundle): Promise<void> {
    for (const [reference, frozen] of packagesOf(bundle)) {
      const { name, version } = onlyOne(reference)
      if (trustsName(this.#trust(), name)) continue
      const found = this.#installed(name, version) ?? this.#install(await this.#download(reference))
      const judged = await this.#judged(found)
      const text = (path: string) => 'files' in judged && utf8.decode(Buffer.from(judged.files.get(path) ?? ''))
      if (frozen.every(each => text(each.path) === each.text)) continue
      throw new CadreError(
        'forbidden',
        `packages.trust of this daemon has changed since this run began, and ${reference} has another content now: start a new run`,
      )
    }
  }

  /**
   * The package that the hub sends. Null when the hub has none, does not answer or sends something else. `unreached`
   * says why nobody knows whether the hub has it.
   */
  async #sent(reference: string): Promise<{ sent: CheckedDownload | null; unreached: string | null }> {
    if (!(await this.#from())) return { sent: null, unreached: null }
    try {
      return { sent: await this.#download(reference), unreached: null }
    } catch (error) {
      const code = error instanceof CadreError ? error.code : null
      if (code === 'unavailable') return { sent: null, unreached: messageOf(error) }
      if (code === 'unauthorized')
        return { sent: null, unreached: `the hub refuses the credential: ${messageOf(error)}` }
      if (code !== 'not_found') this.#warn(reference, messageOf(error))
      return { sent: null, unreached: null }
    }
  }

  #warn(reference: string, error: string): void {
    this.#log.warn('the hub gave no package', { package: reference, error })
  }

  async #from(): Promise<PackageSource | null> {
    this.source ??= await this.findSource()
    return this.source
  }

  async #download(team: string): Promise<CheckedDownload> {
    const source = await this.#from()
    if (!source) throw new CadreError('unavailable', `${team} is not installed, and this daemon has no hub`)
    return checked(parse(team), await source.download(team))
  }

  /**
   * The package as it may be used now. If a signature decides, the bytes that are used are the bytes that were
   * verified, even if the files change. A package that fails is replaced by that of the hub, if that passes. Throws
   * `forbidden`.
   */
  async #judged({ name, version, folder }: Installed): Promise<ResolvedPackage> {
    if (trustsName(this.#trust(), name)) return { name, version, folder }
    const files = await readFiles(folder)
    const content = { name, version, sha256: packageDigest(files) }
    const why = this.#whyNot(content, this.#signature(name, version))
    if (why === null) return inMemory(content, files)
    const { sent, unreached } = await this.#sent(`${name}@${version}`)
    if (unreached !== null) this.#warn(`${name}@${version}`, unreached)
    if (!sent || this.#whyNot(sent, sent.signature) !== null) throw new CadreError('forbidden', why)
    this.#log.warn('an installed package that is not trusted was replaced', { package: `${name}@${version}`, why })
    this.#put(sent)
    return inMemory(sent, sent.files)
  }

  #whyNot(content: SignedPackage, signature: PackageSignature | null = null): string | null {
    return whyUntrusted(this.#trust(), content, signature)
  }

  /** Installs a checked package. A package that is already installed stays as it is. Throws `forbidden`. */
  #install(sent: CheckedDownload): Installed {
    const { name, version } = sent
    const known = this.#installed(name, version)
    if (known) return known
    const why = this.#whyNot(sent, sent.signature)
    if (why !== null) throw new CadreError('forbidden', why)
    this.#put(sent)
    return { name, version, folder: this.#path(name, version) }
  }

  /** Writes a package completely or not at all. */
  #put({ name, version, sha256, files, signature }: CheckedDownload): void {
    const folder = this.#path(name, version)
    const draft = `${folder}.${crypto.randomUUID()}`
    const owned = { mode: 0o600, flush: true } as const
    try {
      for (const { path, content_base64 } of files) {
        mkdirSync(dirname(join(draft, path)), { recursive: true, mode: 0o700 })
        writeFileSync(join(draft, path), Buffer.from(content_base64, 'base64'), owned)
      }
      writeFileSync(this.#digestFile(name, version), sha256, owned)
      if (signature) writeFileSync(this.#signatureFile(name, version), JSON.stringify(signature), owned)
      rmSync(folder, { recursive: true, force: true })
      renameSync(draft, folder)
    } finally {
      rmSync(draft, { recursive: true, force: true })
    }
  }

  #installed(name: Name, version: Version): Installed | null {
    const folder = this.#path(name, version)
    return existsSync(folder) ? { name, version, folder } : null
  }

  #versions(name: Name): Version[] {
    const folder = join(this.#folder, name)
    const entries = existsSync(folder) ? readdirSync(folder) : []
    return entries.filter(isVersion).filter(version => existsSync(join(folder, version, 'team.yml')))
  }

  #path(name: Name, version: Version): string {
    return join(this.#folder, name, version)
  }

  /** The file beside a package's folder that holds the digest from the hub. */
  #digestFile(name: Name, version: Version): string {
    return `${this.#path(name, version)}.sha256`
  }

  #signatureFile(name: Name, version: Version): string {
    return `${this.#path(name, version)}.signature`
  }

  /** The stored signature. Null when there is none, or when the file does not contain one. */
  #signature(name: Name, version: Version): PackageSignature | null {
    try {
      const found: unknown = JSON.parse(readFileSync(this.#signatureFile(name, version), 'utf8'))
      return matches(PackageSignature, found) ? found : null
    } catch {
      return null
    }
  }
}

/** The teams that a bundle has of packages, by `@scope/name@version`. */
function packagesOf(bundle: Bundle): Map<string, { path: string; text: string }[]> {
  const found = new Map<string, { path: string; text: string }[]>()
  for (const [key, { text }] of Object.entries(bundle.json().teams)) {
    const origin = bundle.package(key)
    if (!origin) continue
    const reference = `${origin.name}@${origin.version}`
    found.set(reference, [...(found.get(reference) ?? []), { path: join(origin.folder, TEAM_FILE), text }])
  }
  return found
}

function inMemory({ name, version, sha256 }: SignedPackage, files: readonly PackageFile[]): ResolvedPackage {
  const contents = files.map(({ path, content_base64 }) => [path, Buffer.from(content_base64, 'base64')] as const)
  return { name, version, sha256, files: new Map(contents) }
}

/** Every file of an installed package, in the order of its digest. */
async function readFiles(folder: string): Promise<PackageFile[]> {
  const found = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = found.filter(each => each.isFile()).map(each => join(each.parentPath, each.name))
  const files = paths.map(async path => ({
    path: relative(folder, path).replaceAll(sep, '/'),
    content_base64: Buffer.from(await Bun.file(path).bytes()).toString('base64'),
  }))
  return inOrder(await Promise.all(files))
}

function parse(reference: string): { name: Name; range: string } {
  const [, name, range = '*'] = REFERENCE.exec(reference) ?? []
  if (name) return { name: name as Name, range }
  refuseInPlace(reference)
  throw new CadreError('invalid_request', `${reference}: expected @scope/name or @scope/name@range`)
}

function onlyOne(reference: string): { name: Name; version: Version } {
  const { name, range } = parse(reference)
  if (isVersion(range)) return { name, version: range }
  throw new CadreError('invalid_request', `${reference}: expected one version, such as ${name}@1.0.0`)
}

type CheckedDownload = Download & { name: Name; version: Version }

/** The download. Throws `conflict` unless the download is the package that was asked for, byte for byte as the hub published it. */
function checked({ name, range }: { name: Name; range: string }, found: Download): CheckedDownload {
  const { name: given, version, sha256, files } = found
  const refuse = (why: string) => new CadreError('conflict', `the hub sent a wrong package for ${name}: ${why}`)
  if (given !== name) throw refuse(`it is ${given}`)
  if (!isVersion(version)) throw refuse(`its version is ${version}`)
  // Without this check a hub could send any other signed version instead of the one that was asked for.
  if (!isIn(version, range)) throw refuse(`${range} was asked for, and it is ${version}`)
  const paths = new PackagePaths()
  for (const { path } of files) {
    const problem = problemWithPath(path) ?? paths.add(path)
    if (problem) throw refuse(`${path} ${problem}`)
  }
  // The digest is that of the bytes that will be written, not of their base64 text.
  const bytes = files.map(({ path, content_base64 }) => {
    return { path, content_base64: Buffer.from(content_base64, 'base64').toString('base64') }
  })
  if (packageDigest(bytes) !== sha256) throw refuse(`${given}@${version} does not have the SHA-256 that the hub names`)
  return { ...found, name, version }
}

const isIn = (version: string, range: string): boolean =>
  version === range || range === '*' || range === 'latest' || Bun.semver.satisfies(version, range)
