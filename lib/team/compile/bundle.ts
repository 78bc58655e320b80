// Loads a team with every sub-team that it can reach. A run executes this bundle, even if the files change later.

import { type Stats, statSync } from 'node:fs'
import { basename, dirname, posix, resolve } from 'node:path'
import { CadreError, type Detail, messageOf } from '../../error.ts'
import { pathError } from '../../files/path-error.ts'
import { canonicalJson } from '../../json.ts'
import { isInPlaceName, whyInPlace } from '../../wire/in-place.ts'
import { type Bundle, type BundleJson, type Problem, problemError, type Team, type TeamPlace } from '../model/model.ts'
import type { Node, Place } from '../yaml/yaml.ts'
import { decode, readYaml, Source } from '../yaml/yaml.ts'
import type { AgentLookup } from './compilation.ts'
import { type FileMap, type Files, filesInMemory, filesOnDisk, type ReadFile } from './file-source.ts'
import { fileKey } from './in-place.ts'
import { checkSubCall } from './sub-team.ts'
import { agentsNamed, type Compiled, compileTeam, teamRefs } from './team-file.ts'
import { TEAM_NAME } from './team-schema.ts'

export type { FileMap } from './file-source.ts'

/** A package that a reference resolves to: a folder in which it is installed, or its files. */
export type TeamPackage = { name: string; version: string } & ({ folder: string } | { files: FileMap })

/** Finds `@scope/name[@range]`; null when there is none. What it throws is reported where the team is named. */
export type ResolvePackage = (ref: string) => Promise<TeamPackage | null>

export interface LoadOptions {
  agents: AgentLookup
  resolve?: ResolvePackage
  /** Refuses `team:` paths that leave the root's folder. Packages and files in memory always refuse them. */
  closed?: boolean
  /** Somebody named the file: one that is no team is shown to nobody, not even in the words for its mistakes. */
  anyFile?: boolean
  /** Reads the files of folders. Default: from the disk. */
  readFile?: ReadFile
  /** Further problems, which are added to the problems of the files if there are any. The first team is the root. */
  besides?: (teams: readonly Team[]) => Detail[]
}

const TEAM_FILE = 'team.yml'
/**
 * Maximum number of teams in a bundle, against folders that refer to each other endlessly. The engine limits the
 * nesting of runs.
 */
const MAX_TEAMS = 4_000
const PACKAGE_REF = new RegExp(`^(${TEAM_NAME.slice(1, -1)})(@[^@/\\s]+)?$`)

/** The key of a team of another package: `@scope/name@version[/folder]`. */
const PACKAGE_KEY = /^(@[^/]+\/[^/@]+)@([^/]+)(?:\/(.+))?$/

/**
 * Loads a team from `from` (a folder with a team.yml, the file itself, or files in memory) and every team that it
 * reaches. Throws `invalid_request` with every problem of every file in its details (`problemsOf` for rendering).
 */
export async function loadBundle(from: string | FileMap | TeamPackage, options: LoadOptions): Promise<Bundle> {
  const loader = new Loader(options)
  const { files, file, title } = rootOf(from, options)
  const origin = {
    package: typeof from === 'object' && !(from instanceof Map) ? (from as TeamPackage) : null,
    prefix: '',
    files,
    closed: typeof from !== 'string' || (options.closed ?? false),
    local: typeof from === 'string',
  }
  await loader.load({ key: '.', origin, path: '.', file }, null)
  return loader.finish(title)
}

function rootOf(
  from: string | FileMap | TeamPackage,
  { closed = false, readFile }: LoadOptions,
): { files: Files; file: string; title: string } {
  if (from instanceof Map) return { files: filesInMemory(from), file: TEAM_FILE, title: TEAM_FILE }
  if (typeof from === 'object') {
    const { name, version } = from as TeamPackage
    return { files: filesOf(from as TeamPackage), file: TEAM_FILE, title: `${name}@${version}` }
  }
  const path = resolve(from)
  const found = statOf(path)
  if (found?.isDirectory()) return { files: filesOnDisk(path, closed, readFile), file: TEAM_FILE, title: from }
  if (found?.isFile()) return { files: filesOnDisk(dirname(path), closed, readFile), file: basename(path), title: from }
  throw new CadreError('invalid_request', `there is no ${from}: name a folder with a ${TEAM_FILE}, or the file itself`)
}

/** Undefined when there is nothing at `path`. Throws `invalid_request` when the path cannot be used. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    throw pathError(error) ?? error
  }
}

/** What a package may do follows from its name, so it must not have another one inside. */
function checkName(source: Source, known: Origin['package'], team: Team | undefined): void {
  if (!known || !team || (team.name === known.name && team.version === known.version)) return
  const expected = `${known.name}@${known.version}`
  source.report({ offset: 0, path: '/name' }, `the package is ${expected}, and this says ${team.name}@${team.version}`)
}

function filesOf(found: TeamPackage): Files {
  return 'files' in found ? filesInMemory(found.files) : filesOnDisk(found.folder, true)
}

/** Where teams come from: the folders of the root, or those of a package. */
interface Origin {
  /** The package, when the teams are those of one. Its root must bear the same name and version. */
  package: { name: string; version: string } | null
  /** `@scope/name@version` for a package that another team names. */
  prefix: string
  files: Files
  closed: boolean
  /** Whether its teams have a folder to work in. */
  local: boolean
}

interface Located {
  key: string
  origin: Origin
  /** Folder, relative to the origin's. */
  path: string
  file: string
}

interface Loaded {
  source: Source
  compiled: Compiled | null
  refs: Record<string, string>
  folder: string | null
}

type Fail = (message: string, more?: Pick<Problem, 'isUnread'>) => null

class Loader {
  readonly #options: LoadOptions
  readonly #loaded = new Map<string, Loaded>()
  readonly #packages = new Map<string, Origin>()

  constructor(options: LoadOptions) {
    this.#options = options
  }

  /** Reads one team and what it names. `from` is where it is named; null for the root. Returns whether it exists. */
  async load(located: Located, from: { source: Source; place: Place } | null): Promise<boolean> {
    const { key, origin, path, file } = located
    if (this.#loaded.has(key)) return true
    const name = posix.join(path, file)
    const bytes = await origin.files.read(name).catch((error: unknown) => {
      if (!from) throw error
      from.source.report(from.place, messageOf(error), { isUnread: true })
    })
    if (bytes === undefined) return false
    if (!bytes) {
      const near = (await origin.files.read(posix.join(path, 'team.yaml'))) ? ': rename its team.yaml' : ''
      const folder = from ? posix.join(origin.prefix, path) : (origin.files.folder ?? 'the package')
      const message = `there is no ${file} in ${folder}${near}`
      if (!from) throw new CadreError('invalid_request', message)
      from.source.report(from.place, message)
      return false
    }
    const text = decode(bytes)
    const source = new Source(posix.join(origin.prefix, name), text ?? '')
    const folder = origin.local && origin.files.folder ? resolve(origin.files.folder, path) : null
    const loaded: Loaded = { source, compiled: null, refs: {}, folder }
    this.#loaded.set(key, loaded)
    if (text === null) source.report({ offset: 0, path: '' }, 'the file is not UTF-8 text')
    const root = text === null ? null : readYaml(source)
    const fields = root?.kind === 'map' ? root.entries.keys() : []
    if (this.#options.anyFile && !source.isTeam(fields)) return true
    if (!root) return true
    for (const [ref, node] of teamRefs(root)) {
      const target = await this.#locate(ref, located, source, node)
      if (target && (await this.load(target, { source, place: node }))) loaded.refs[ref] = target.key
    }
    const { agents } = this.#options
    // An agent that cannot be used is no longer among the names once it was loaded, and another may be meant then.
    let known: readonly string[]
    do {
      known = agents.names()
      await agents.load?.(agentsNamed(root, known))
    } while (agents.names().length < known.length)
    loaded.compiled = compileTeam(source, root, { agents, refs: loaded.refs, key })
    if (path === '.') checkName(source, origin.package, loaded.compiled?.team)
    return true
  }

  async #locate(ref: string, from: Located, source: Source, node: Node): Promise<Located | null> {
    const fail: Fail = (message, more) => {
      source.report(node, message, more)
      return null
    }
    if (this.#loaded.size >= MAX_TEAMS) return fail(`a team may reach at most ${MAX_TEAMS} others`)
    if (PACKAGE_REF.test(ref)) return this.#locatePackage(ref, fail)
    if (ref.includes('{{')) return null
    if (isInPlaceName(ref)) return fail(whyInPlace(ref)!)
    if (/^@\S+\s/.test(ref)) {
      const name = ref.split('@', 2)[1]
      return fail(`a version range must be one word: write @${name}@^1.2 (from 1.2 on, below 2) or @${name}@1.x`)
    }
    if (!/^\.\.?(\/|$)/.test(ref))
      return fail('expected a folder (./name or ../name) or a package (@scope/name[@range])')
    if (/\.ya?ml$/.test(ref)) return fail(`name the folder that holds the ${TEAM_FILE}, not the file`)
    const path = posix.join(from.path, ref).replace(/\/$/, '')
    if (from.origin.closed && (path === '..' || path.startsWith('../')))
      return fail('this path must stay inside the package')
    if (PACKAGE_KEY.test(path)) return fail('a folder must not have the name of a version of a package')
    const key = from.origin.prefix ? posix.join(from.origin.prefix, path) : path
    return { key, origin: from.origin, path, file: TEAM_FILE }
  }

  async #locatePackage(ref: string, fail: Fail): Promise<Located | null> {
    const known = this.#packages.get(ref)
    if (known) return { key: known.prefix, origin: known, path: '.', file: TEAM_FILE }
    try {
      const found = await this.#options.resolve?.(ref)
      if (!found) return fail(`there is no package ${ref} here`)
      const prefix = `${found.name}@${found.version}`
      const origin = { package: found, prefix, files: filesOf(found), closed: true, local: false }
      this.#packages.set(ref, origin)
      return { key: origin.prefix, origin, path: '.', file: TEAM_FILE }
    } catch (error) {
      return fail(`${ref}: ${messageOf(error)}`, { isUnread: true })
    }
  }

  finish(title: string): Bundle {
    const problems: Problem[] = []
    const teams = new Map<string, Team>()
    const json: BundleJson = { root: '.', teams: {} }
    for (const [key, { source, compiled, refs, folder }] of this.#loaded) {
      for (const call of compiled?.calls ?? []) {
        const target = this.#loaded.get(refs[call.ref] ?? '')
        if (target?.compiled) checkSubCall(source, call, target.compiled.team)
      }
      problems.push(...source.problems)
      for (const [each, team] of teamsIn(key, compiled)) teams.set(each, team)
      json.teams[key] = { file: source.file, folder, text: source.text, refs }
    }
    if (problems.length > 0) throw problemError(title, problems, this.#options.besides?.([...teams.values()]))
    return new StoredBundle(json, teams)
  }
}

/** The team of a file and those of its maps in place, by key. */
function* teamsIn(key: string, compiled: Compiled | null): Generator<[string, Team]> {
  if (!compiled) return
  yield [key, compiled.team]
  yield* compiled.inPlace
}

/**
 * Restores a bundle from the value of `json()`, without its files. Each team is compiled when it is first asked for.
 */
export function bundleFromJson(json: BundleJson): Bundle {
  return new StoredBundle(json, new Map())
}

class StoredBundle implements Bundle {
  readonly root: string
  readonly #json: BundleJson
  readonly #teams: Map<string, Team>
  #id: string | undefined
  #keys: readonly string[] | undefined

  constructor(json: BundleJson, teams: Map<string, Team>) {
    this.root = json.root
    this.#json = json
    this.#teams = teams
  }

  get id(): string {
    this.#id ??= new Bun.CryptoHasher('sha256').update(canonicalJson(this.#json)).digest('hex')
    return this.#id
  }

  keys(): readonly string[] {
    this.#keys ??= this.#allKeys()
    return this.#keys
  }

  #allKeys(): readonly string[] {
    const files = Object.keys(this.#json.teams)
    // The maps in place of a file are known once it is compiled.
    for (const key of files) this.team(key)
    const keys = Map.groupBy(this.#teams.keys(), fileKey)
    return files.flatMap(key => keys.get(key)!)
  }

  team(key: string): Team {
    const known = this.#teams.get(key)
    if (known) return known
    const ofFile = fileKey(key)
    const { file, text, refs } = this.#stored(key)
    const source = new Source(file, text)
    const root = readYaml(source)
    const compiled = root && compileTeam(source, root, { agents: null, refs, key: ofFile })
    // Problems that newer checks would find are ignored: the text was valid when its run began.
    if (!compiled) throw problemError(file, source.problems)
    for (const [each, team] of teamsIn(ofFile, compiled)) this.#teams.set(each, team)
    const team = this.#teams.get(key)
    if (!team) throw new CadreError('internal', `the bundle has no team ${key}`)
    return team
  }

  file(key: string): { key: string; file: string; text: string } {
    const { file, text } = this.#stored(key)
    return { key: fileKey(key), file, text }
  }

  folder(key: string): string | null {
    return this.#stored(key).folder
  }

  package(key: string): TeamPlace | null {
    if (this.folder(key) !== null) return null
    const [, name, version, folder = '.'] = PACKAGE_KEY.exec(fileKey(key)) ?? []
    if (name) return { name, version: version!, folder }
    // Teams of the root's own package have keys without its name.
    const root = this.team(this.root)
    return { name: root.name, version: root.version, folder: fileKey(key) }
  }

  json(): BundleJson {
    return this.#json
  }

  #stored(key: string): BundleJson['teams'][string] {
    const { teams } = this.#json
    const ofFile = fileKey(key)
    const stored = Object.hasOwn(teams, ofFile) ? teams[ofFile] : undefined
    if (!stored) throw new CadreError('internal', `the bundle has no team ${key}`)
    return stored
  }
}
