// The catalogue of all agents. Files are found by name in three folders, and a file in a later folder replaces the one
// of the same name in an earlier folder. A file that is not a valid agent is listed with the reason and skipped; it
// does not affect the others. Agents are loaded when they are asked for by name, because a run uses one or two, and all
// of them take longer to load than most runs take to begin.

import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import type { Static } from 'typebox'
import { messageOf } from '../error.ts'
import { isObject } from '../json.ts'
import { Limit } from '../lived-time.ts'
import { carried } from '../program/carried.ts'
import { ROOT } from '../program/install-root.ts'
import type { ListAgents } from '../wire/calls/agents.ts'
import { forgetChanged, haveChanged, isBuiltIn, listingOf } from './changed-agents.ts'
import { AGENT, type Agent, type Handler } from './define.ts'
import { problemsOf } from './definition.ts'
import { refusedImport, registerCadre, sharePackages } from './imports.ts'

export interface Skipped {
  file: string
  reason: string
}

export interface Shadowed {
  name: string
  file: string
  /** The file that is used instead. */
  by: string
}

export interface Catalogue {
  /**
   * Loads the agents of these references, or all agents, and resolves with this catalogue. A file is loaded once. Never
   * throws because of a file's content, but a file that blocks the thread while it loads cannot be stopped.
   */
  load(references?: Iterable<string>): Promise<Catalogue>
  /**
   * The agent of that name. `issues@eu`, which names an account, gives the agent `issues`. Throws for an agent that was
   * not loaded: without its schema, its secrets would not be known as such.
   */
  get(name: string): Agent | undefined
  /** The file of that agent when it is none of cadre's own; null otherwise. */
  ownFile(name: string): string | null
  /** Names of all agents, except those whose files were loaded and are not valid. */
  names(): string[]
  /** Names that have a file which is none of cadre's own. */
  ownNames(): string[]
  /**
   * The public catalogue of what was loaded, format version 1.0.0. Schemas are JSON Schema, and secrets are marked
   * `x-secret`.
   */
  list(): { version: string } & Static<typeof ListAgents.data>
  readonly skipped: readonly Skipped[]
  readonly shadowed: readonly Shadowed[]
  /**
   * This catalogue, or a new one if agents outside of cadre were added, changed or removed. Agents that an older
   * catalogue has loaded stay as they were.
   */
  current(): Catalogue
}

export interface DiscoverOptions {
  /** The daemon's home. Its own agents are in `<home>/agents`. */
  home: string
  /** A third folder with agents (`CADRE_AGENTS`). */
  extra?: string | undefined
  /** Maximum number of milliseconds to load a file; default 5,000. */
  timeout?: number
}

const TIMEOUT = 5_000

/** The folder of cadre's own agents. */
export const BUILT_IN = join(ROOT, 'agents')

/** What agents are named, and their files before `.ts`. */
export const AGENT_NAME = /^[a-z][a-z0-9_-]*$/

/** The name of the agent in a reference: `issues` for `issues@eu`. */
function agentNameOf(reference: string): string {
  const account = reference.indexOf('@')
  return account < 0 ? reference : reference.slice(0, account)
}

type Loaded = { agent: Agent } | { reason: string }

/** A file that has the name of an agent. */
interface Candidate {
  file: string
  name: string
  loading?: Promise<void>
  loaded?: Loaded
}

/** `findAgents`, with every agent loaded. */
export async function discover(options: DiscoverOptions): Promise<Catalogue> {
  return findAgents(options).load()
}

/**
 * Finds the agents in `agents/` of cadre, `<home>/agents` and `extra`, and loads none of them. A folder that
 * does not exist counts as empty.
 */
export function findAgents(options: DiscoverOptions): Catalogue {
  const { home, extra, timeout = TIMEOUT } = options
  const folders = [BUILT_IN, resolve(home, 'agents'), ...(extra ? [resolve(extra)] : [])]
  const own = folders.filter(folder => !isBuiltIn(folder))
  const stamp = listingOf(own)
  const found = [...new Set(folders)].map(filesIn)
  const odd = found.flatMap(each => each.odd)
  const candidates = found.flatMap(({ files }) =>
    files.map((file): Candidate => ({ file, name: basename(file, '.ts') })),
  )
  const byName = Map.groupBy(candidates, ({ name }) => name)

  const take = async (candidate: Candidate) => {
    candidate.loaded = await load(candidate.file, timeout)
  }
  const catalogue: Catalogue = {
    async load(references) {
      const wanted = references
        ? [...new Set(Iterator.from(references).map(agentNameOf))].flatMap(name => byName.get(name) ?? [])
        : candidates
      await Promise.all(wanted.map(candidate => (candidate.loading ??= take(candidate))))
      return catalogue
    },
    current: () => (listingOf(own) === stamp && !haveChanged(own) ? catalogue : findAgents(options)),
    get: reference => lastOf(byName.get(agentNameOf(reference)) ?? [])?.agent,
    ownFile(reference) {
      const file = lastOf(byName.get(agentNameOf(reference)) ?? [])?.file
      return file === undefined || isBuiltIn(dirname(file)) ? null : file
    },
    names: () =>
      [...byName]
        .filter(([, files]) => files.some(({ loaded }) => !loaded || 'agent' in loaded))
        .map(([name]) => name)
        .sort(),
    ownNames: () => [...byName].filter(([, files]) => files.some(isOwn)).map(([name]) => name),
    list() {
      const agents = catalogue.names().map(name => show(name, lastOf(byName.get(name)!)!))
      const { skipped, shadowed } = catalogue
      return JSON.parse(JSON.stringify({ version: '1.0.0', agents, skipped, shadowed }))
    },
    get skipped() {
      const broken = candidates.flatMap(candidate => {
        const { file, name, loaded } = candidate
        if (!loaded || 'agent' in loaded) return []
        const files = byName.get(name)!
        const earlier = lastOf(files.slice(0, files.indexOf(candidate)))
        return { file, reason: loaded.reason + (earlier ? `; '${name}' stays that of ${earlier.file}` : '') }
      })
      return [...odd, ...broken]
    },
    get shadowed() {
      return [...byName].flatMap(([name, files]) => {
        const sound = files.filter(({ loaded }) => loaded && 'agent' in loaded)
        return sound.slice(1).map(({ file: by }, at) => ({ name, file: sound[at]!.file, by }))
      })
    },
  }
  return catalogue
}

const isOwn = ({ file }: Candidate): boolean => !isBuiltIn(dirname(file))

/** The agent of the last file that is valid. */
function lastOf(files: readonly Candidate[]): { agent: Agent; file: string } | undefined {
  const sound = files.flatMap(({ file, name, loaded }) => {
    if (!loaded) throw new Error(`the agent ${name} was not loaded`)
    return 'agent' in loaded ? { agent: loaded.agent, file } : []
  })
  return sound.at(-1)
}

function filesIn(folder: string): { files: string[]; odd: Skipped[] } {
  const files: string[] = []
  const odd: Skipped[] = []
  if (carried && folder === BUILT_IN) return { files: Object.keys(carried.agents), odd }
  if (!existsSync(folder)) return { files, odd }
  for (const entry of readdirSync(folder).sort()) {
    const file = join(folder, entry)
    const found = lstatSync(file)
    // These files make the folder a package of its own, with a node_modules.
    if (entry === 'package.json' || entry === 'bun.lock') continue
    // Folders contain code that agents share, and dot files belong to editors: both are ignored.
    if (entry.startsWith('.') || (found.isDirectory() && !entry.endsWith('.ts'))) continue
    const reason = oddity(entry, found)
    if (reason) odd.push({ file, reason })
    else files.push(file)
  }
  return { files, odd }
}

function oddity(entry: string, found: ReturnType<typeof lstatSync>): string | null {
  if (!entry.endsWith('.ts')) return 'not an agent: agents are files `<name>.ts`'
  if (found?.isSymbolicLink()) return 'a symbolic link: copy the file, or name its folder in CADRE_AGENTS'
  if (!found?.isFile()) return 'not a regular file'
  if (!AGENT_NAME.test(entry.slice(0, -3))) return 'the name of an agent is [a-z][a-z0-9_-]*, then .ts'
  return null
}

/** The agent of one file, or the reason why the file is not an agent. */
export async function load(file: string, timeout = TIMEOUT): Promise<Loaded> {
  registerCadre()
  try {
    const module = await within(timeout, carried?.agents[file]?.() ?? importChecked(file))
    const exported: unknown = 'default' in module ? module.default : undefined
    if (!isObject(exported) || !isAgent(exported)) {
      return { reason: `${file}: exports no agent: write \`export default agent({ … })\`` }
    }
    const problems = problemsOf(exported)
    return problems.length > 0 ? { reason: problems.join('; ') } : { agent: exported }
  } catch (error) {
    return { reason: error instanceof Refused ? error.message : whereAndWhy(error, file) }
  }
}

/** Imports a file that imports only what it may. Throws a `Refused` where it imports something else. */
async function importChecked(file: string): Promise<object> {
  const packages = new Set<string>()
  const files = new Set<string>()
  const refused = refusedImport(file, packages, files)
  if (!isBuiltIn(file)) forgetChanged(file, files)
  if (refused) throw new Refused(refused)
  if (!file.startsWith(`${ROOT}/`)) sharePackages(packages)
  return import(file)
}

class Refused extends Error {}

/** Whether the value was made by `agent()`. Its fields are checked separately. */
function isAgent(exported: object): exported is Agent {
  return AGENT in exported
}

async function within<T>(timeout: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  using _ = new Limit(timeout, () =>
    reject(new Error(`did not load within ${timeout} ms: check for an \`await\` at top level`)),
  )
  return await Promise.race([work, promise])
}

/** `file:line:column: message`, as far as the loader or the stack trace has the position. */
function whereAndWhy(error: unknown, file: string): string {
  const first = error instanceof AggregateError && error.errors.length > 0 ? error.errors[0] : error
  const position = isObject(first) || first instanceof Error ? (first as { position?: Position }).position : undefined
  if (position?.file) return `${position.file}:${position.line}:${position.column}: ${messageOf(first)}`
  const stack = first instanceof Error ? (first.stack ?? '') : ''
  const at = stack.indexOf(`${file}:`)
  const line = at < 0 ? '' : /^:\d+(:\d+)?/.exec(stack.slice(at + file.length))?.[0]
  return `${file}${line ?? ''}: ${messageOf(first)}`
}

interface Position {
  file: string
  line: number
  column: number
}

/** The entry of one agent in the public list. `JSON.stringify` drops undefined fields and TypeBox's internal marks. */
function show(name: string, { agent, file }: { agent: Agent; file: string }) {
  const { type, version, description, settings, actions, source, target, phase, notify } = agent
  return {
    name,
    type,
    version,
    description,
    file,
    settings,
    actions: Object.fromEntries(
      Object.entries(actions ?? {}).map(([action, handler]) => [
        action,
        { direction: handler.direction, ...showHandler(handler) },
      ]),
    ),
    source: source && showHandler(source),
    target: target && showHandler(target),
    phase: phase && showHandler(phase),
    notify: notify && showHandler(notify),
  }
}

function showHandler({ description, effect, entry, data, find }: Handler) {
  const shown = typeof effect === 'function' ? 'by entry' : effect
  return { description, effect: shown, entry, data, find: find !== undefined }
}
