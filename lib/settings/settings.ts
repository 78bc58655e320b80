// The settings of a home, `<home>/settings.yml`: nested YAML, readable by its owner only, written whole or not at all.
// References (`${env:…}` …) are resolved when the file is read, at start and after each `set`: what agents use and
// what is masked is always the same set of values. A change made by hand counts from the next start.

import { chmod, mkdir, open, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type Document, isMap, LineCounter, parseDocument, visit } from 'yaml'
import type { Catalogue } from '../agent/catalogue.ts'
import type { AgentDefinition } from '../agent/define.ts'
import { CadreError, type Detail } from '../error.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'
import type { Log } from '../log.ts'
import type { Secret } from '../redact.ts'
import { problems as schemaProblems } from '../schema.ts'
import { checkKey, checkValue } from './key.ts'
import { isReference, type Resolved, resolveReferences } from './references.ts'
import { leavesOf, looksSecret, secretKind, soundsSecret, valueAt } from './tree.ts'
import { typed } from './typed.ts'

type Agents = Pick<Catalogue, 'get'>

export interface Settings {
  /** The resolved settings of `issues` or `issues@eu`, with defaults. Throws `invalid_request` with all `problems`. */
  of(reference: string, definition: AgentDefinition): JsonObject
  /** What is missing or wrong in them; each message says how to set it right. */
  problems(reference: string, definition: AgentDefinition): Detail[]
  networkAllow(): string[]
  /** A resolved value, unmasked; undefined when it is not set or cannot be resolved. */
  value(key: string): Json | undefined
  /** Masked. Throws `not_found`. */
  get(key: string, agents: Agents): { key: string; value: Json }
  /** Every value that is set, masked, in the order of the file. */
  list(agents: Agents): { key: string; value: Json }[]
  /** Durable when it returns; null removes. Throws `invalid_request` for an unknown key or a value that cannot be. */
  set(key: string, value: Json, agents?: Agents): Promise<void>
  /** Every secret value: marked by an agent's schema, under a key that sounds like a credential, or that looks like one. */
  secrets(agents: Agents): Secret[]
}

export interface SettingsOptions {
  log: Pick<Log, 'warn'>
  env?: Record<string, string | undefined>
  /** A value of the operating system's keychain, service `cadre`; null when there is none. */
  keychain?(name: string): Promise<string | null>
}

const MASK = '***'

/** Opens the settings; a home without the file has none. Throws `invalid_request` for a file that is no YAML mapping. */
export async function openSettings(home: string, options: SettingsOptions): Promise<Settings> {
  const { log, env = process.env, keychain = systemKeychain } = options
  const file = join(home, 'settings.yml')
  let raw: JsonObject = {}
  let resolved: Resolved = { value: {}, failures: new Map() }
  let inFiles: Secret[] = []
  let writing: Promise<void> = Promise.resolve()

  const load = async () => {
    raw = toObject(await read(file, log), file)
    resolved = await resolveReferences(raw, { env, keychain })
    inFiles = await secretsInFiles(resolved.value)
  }
  await load()

  const own = (reference: string, definition: AgentDefinition) =>
    typed(valueAt(resolved.value, ['agents', reference]) ?? {}, definition.settings) as JsonObject

  const problems = (reference: string, definition: AgentDefinition): Detail[] => {
    const prefix = `agents.${reference}`
    const settings = own(reference, definition)
    const unresolved = [...resolved.failures].filter(([key]) => key.startsWith(`${prefix}.`))
    const found = new Map(unresolved.map(([key, reason]) => [key, `${key}: ${reason}`]))
    for (const { path, message } of schemaProblems(definition.settings, settings)) {
      const key = prefix + path.replaceAll('/', '.')
      const what = message === 'is required' ? 'is not set' : message
      if (!found.has(key)) found.set(key, `${key} ${what}; set it with: bun daemon.ts settings set ${key} -`)
    }
    if (found.size === 0) {
      for (const name of definition.missing?.(settings) ?? []) {
        const key = `${prefix}.${name}`
        found.set(key, `${key} is not set; set it with: bun daemon.ts settings set ${key} -`)
      }
    }
    return [...found].map(([path, message]) => ({ path, message }))
  }

  const masked = (value: Json, path: string[], agents: Agents): Json => {
    if (typeof value === 'string' && isReference(value)) return value
    if (Array.isArray(value)) return value.map(item => masked(item, path, agents))
    if (!isObject(value)) return ['open', 'file'].includes(secretKind(path, agents)) ? value : MASK
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, masked(item, [...path, key], agents)]))
  }

  return {
    of(reference, definition) {
      const details = problems(reference, definition)
      if (details.length === 0) return own(reference, definition)
      throw new CadreError('invalid_request', details.map(({ message }) => message).join('; '), { details })
    },
    problems,
    networkAllow() {
      const allow = valueAt(resolved.value, ['network', 'allow'])
      return Array.isArray(allow) ? allow.map(String) : []
    },
    value: key => valueAt(resolved.value, key.split('.')),
    get(key, agents) {
      const path = key.split('.')
      const value = valueAt(raw, path)
      if (value === undefined) throw new CadreError('not_found', `the setting ${key} is not set`)
      return { key, value: masked(value, path, agents) }
    },
    list: agents =>
      leavesOf(raw).map(({ path, value }) => ({ key: path.join('.'), value: masked(value, path, agents) })),
    set(key, value, agents) {
      const path = checkKey(key, agents)
      const stored = value === null ? null : checkValue(path, value, agents)
      const change = async () => {
        const document = await read(file, log)
        if (document.contents === null) document.contents = document.createNode({}) as Document['contents']
        if (stored === null) document.deleteIn(path)
        else setIn(document, path, stored)
        await write(file, document.toString())
        await load()
      }
      const done = writing.then(change)
      writing = done.catch(() => {})
      return done
    },
    secrets: agents => [
      ...inFiles,
      ...leavesOf(resolved.value).flatMap(({ path, value }) => {
        const kind = secretKind(path, agents)
        const items = [value].flat().filter(item => kind === 'value' || (kind === 'unknown' && looksSecret(item)))
        return items.map(item => ({ name: path.join('.'), value: String(item ?? '') }))
      }),
    ],
  }
}

/** The secrets of credentials files that settings name: the values of a JSON document whose names sound like it. */
async function secretsInFiles(settings: JsonObject): Promise<Secret[]> {
  const files = leavesOf(settings).filter(({ path, value }) => typeof value === 'string' && /_file$/.test(path.at(-1)!))
  const found = files.map(async ({ path, value }) => {
    try {
      const content: unknown = await Bun.file(value as string).json()
      return leavesOf(isObject(content) ? (content as JsonObject) : {})
        .filter(leaf => typeof leaf.value === 'string' && soundsSecret(leaf.path.at(-1)!))
        .map(leaf => ({ name: `${leaf.path.at(-1)} in the file of ${path.join('.')}`, value: leaf.value as string }))
    } catch {
      // The agent that needs the file says what is wrong with it.
      return []
    }
  })
  return (await Promise.all(found)).flat()
}

/** The document in the file; one that others may read is closed to them. */
async function read(file: string, log: SettingsOptions['log']): Promise<Document> {
  const found = await stat(file).catch(() => null)
  if (found && (found.mode & 0o077) !== 0) {
    await chmod(file, 0o600)
    log.warn('settings tightened', { file, mode: (found.mode & 0o777).toString(8), now: '600' })
  }
  const lineCounter = new LineCounter()
  // Pretty errors would quote the line, and with it a secret.
  const document = parseDocument(found ? await readFile(file, 'utf8') : '', { lineCounter, prettyErrors: false })
  const [error] = document.errors
  if (!error) return document
  const { line, col } = lineCounter.linePos(error.pos[0])
  throw new CadreError('invalid_request', `${file}:${line}:${col}: no valid YAML: ${error.message}`)
}

function toObject(document: Document, file: string): JsonObject {
  // `0123` and `1e5` are credentials as likely as numbers: a number that would be printed otherwise stays a text.
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value === 'number' && String(node.value) !== node.source) node.value = node.source
    },
  })
  const value: unknown = document.toJS({ maxAliasCount: 100 }) ?? {}
  if (isObject(value)) return value as JsonObject
  throw new CadreError('invalid_request', `${file}: expected a mapping such as \`agents: {wiki: {base_url: …}}\``)
}

function setIn(document: Document, path: string[], value: Json): void {
  for (let length = 1; length < path.length; length++) {
    const above = path.slice(0, length)
    if (document.hasIn(above) && !isMap(document.getIn(above, true))) document.deleteIn(above)
  }
  document.setIn(path, document.createNode(value))
}

async function write(file: string, text: string): Promise<void> {
  const temporary = `${file}.${process.pid}.tmp`
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  try {
    const handle = await open(temporary, 'w', 0o600)
    try {
      await handle.writeFile(text)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(temporary, file)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  const folder = await open(dirname(file), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

async function systemKeychain(name: string): Promise<string | null> {
  return Bun.secrets.get({ service: 'cadre', name })
}
