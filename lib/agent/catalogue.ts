// The catalogue of all agents. Files are found by name in three folders, and a file in a later folder replaces the one
// of the same name in an earlier folder. A file that is not a valid agent is listed with the reason and skipped; it
// does not affect the others.

import { existsSync, lstatSync, readdirSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import type { TSchema } from 'typebox'
import { messageOf } from '../error.ts'
import { isObject, type JsonObject } from '../json.ts'
import { AGENT, type Agent, type Handler } from './define.ts'
import { problemsOf } from './definition.ts'
import { REPOSITORY, refusedImport, registerCadre, sharePackages } from './imports.ts'

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
  /** The agent of that name. `issues@eu`, which names an account, gives the agent `issues`. */
  get(name: string): Agent | undefined
  names(): string[]
  /** The public catalogue, format version 1.0.0. Schemas are JSON Schema, and secrets are marked `x-secret`. */
  list(): JsonObject
  readonly skipped: readonly Skipped[]
  readonly shadowed: readonly Shadowed[]
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

/** What agents are named, and their files before `.ts`. */
export const AGENT_NAME = /^[a-z][a-z0-9_-]*$/

/** The name of the agent in a reference: `issues` for `issues@eu`. */
function agentNameOf(reference: string): string {
  return reference.split('@', 1)[0]!
}

/**
 * Loads the agents in `agents/` of the repository, `<home>/agents` and `extra`. A folder that does not exist counts as
 * empty. It never throws because of a file's content, but a file that blocks the thread while it loads cannot be
 * stopped.
 */
export async function discover({ home, extra, timeout = TIMEOUT }: DiscoverOptions): Promise<Catalogue> {
  registerCadre()
  const folders = [join(REPOSITORY, 'agents'), resolve(home, 'agents'), ...(extra ? [resolve(extra)] : [])]
  const skipped: Skipped[] = []
  const shadowed: Shadowed[] = []
  const agents = new Map<string, { agent: Agent; file: string }>()
  const loads = [...new Set(folders)].flatMap(folder => {
    const { files, odd } = filesIn(folder)
    skipped.push(...odd)
    return files.map(async file => ({ file, loaded: await load(file, timeout) }))
  })
  for (const { file, loaded } of await Promise.all(loads)) {
    const name = basename(file, '.ts')
    const earlier = agents.get(name)
    if ('reason' in loaded) {
      const kept = earlier ? `; '${name}' stays that of ${earlier.file}` : ''
      skipped.push({ file, reason: loaded.reason + kept })
      continue
    }
    if (earlier) shadowed.push({ name, file: earlier.file, by: file })
    agents.set(name, { agent: loaded.agent, file })
  }
  const names = [...agents.keys()].sort()
  return {
    get(reference) {
      return agents.get(agentNameOf(reference))?.agent
    },
    names: () => names,
    list: () =>
      JSON.parse(
        JSON.stringify({
          version: '1.0.0',
          agents: names.map(name => show(name, agents.get(name)!)),
          skipped,
          shadowed,
        }),
      ),
    skipped,
    shadowed,
  }
}

function filesIn(folder: string): { files: string[]; odd: Skipped[] } {
  const files: string[] = []
  const odd: Skipped[] = []
  if (!existsSync(folder)) return { files, odd }
  for (const entry of readdirSync(folder).sort()) {
    const file = join(folder, entry)
    const found = lstatSync(file)
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

/** The agent of one file, or why it is none. */
export async function load(file: string, timeout = TIMEOUT): Promise<{ agent: Agent } | { reason: string }> {
  registerCadre()
  try {
    const packages = new Set<string>()
    const refused = refusedImport(file, packages)
    if (refused) return { reason: refused }
    if (!file.startsWith(`${REPOSITORY}/`)) sharePackages(packages)
    const module = await within(timeout, import(file))
    const exported: unknown = module.default
    if (!isObject(exported) || !isAgent(exported)) {
      return { reason: `${file}: exports no agent: write \`export default agent({ … })\`` }
    }
    const problems = problemsOf(exported)
    return problems.length > 0 ? { reason: problems.join('; ') } : { agent: exported }
  } catch (error) {
    return { reason: whereAndWhy(error, file) }
  }
}

/** Whether the value was made by `agent()`. Its fields are checked separately. */
function isAgent(exported: object): exported is Agent {
  return AGENT in exported
}

async function within<T>(timeout: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => reject(new Error(`did not load within ${timeout} ms: check for an \`await\` at top level`)),
    timeout,
  )
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
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
        { direction: handler.direction, description: handler.description, ...showHandler(handler) },
      ]),
    ),
    source: source && showHandler(source),
    target: target && showHandler(target),
    phase: phase && showHandler(phase),
    notify: notify && showHandler(notify),
  }
}

function showHandler({ effect, entry, find }: Handler): { effect: string; entry: TSchema; find: boolean } {
  return { effect: typeof effect === 'function' ? 'by entry' : effect, entry, find: find !== undefined }
}
