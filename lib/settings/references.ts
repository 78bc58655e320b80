// References to values that are stored elsewhere: `${env:NAME}`, `${file:/path}`, `${keychain:NAME}` or
// `${cmd:COMMAND}` as the whole value of a setting. `Lookups` keeps the resolved values, in memory only.
//
// The first three are resolved when the settings file is read. A command may take seconds or prompt a person, so it
// runs only when its value is needed, and its output is valid for an hour.

import { readFile } from 'node:fs/promises'
import { messageOf } from '../error.ts'
import { fromHome } from '../files/home-path.ts'
import { isObject, type Json, type JsonObject } from '../json.ts'

const REFERENCE = /^\$\{(?:(env|file|keychain):([^{}]+)|(cmd):(.+))\}$/s
const FRESH_MS = 60 * 60 * 1_000

export interface Sources {
  env: Record<string, string | undefined>
  keychain(name: string): Promise<string | null>
  /** The output of a command. Throws when it fails, with a message that contains none of its output. */
  command(text: string): Promise<string>
  /** Epoch milliseconds. */
  now(): number
}

type Outcome = { value: string } | { failure: string }

export interface Resolved {
  /** The settings with references replaced. References that could not be resolved are left out. */
  value: JsonObject
  /** The reasons why references could not be resolved, by dotted key. */
  failures: Map<string, string>
}

export function isReference(value: string): boolean {
  return REFERENCE.test(value)
}

/** The problem with a text that looks like a reference but is not one; null for any other text. */
export function misspeltReference(value: string): string | null {
  if (isReference(value) || !/^\$\{\w*:.*\}$/s.test(value)) return null
  return 'a reference must be ${env:NAME}, ${file:/path}, ${keychain:NAME} or ${cmd:COMMAND}'
}

function isCommand(value: string): boolean {
  return REFERENCE.exec(value)?.[3] === 'cmd'
}

/** The commands among the references in `settings`, each once, as they are written. */
export function commandsIn(settings: Json): string[] {
  return [...new Set(textsIn(settings).filter(isCommand))]
}

function textsIn(value: Json): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : []
}

export class Lookups {
  readonly #sources: Sources
  readonly #learned: () => void
  /** Results by reference, as it is written. */
  readonly #outcomes = new Map<string, Outcome>()
  /** Commands whose output is still valid, and until when. */
  readonly #freshUntil = new Map<string, number>()
  readonly #asking = new Map<string, Promise<void>>()

  /** `learned` is called when a command has returned a value, before anyone receives the value. */
  constructor(sources: Sources, learned: () => void) {
    this.#sources = sources
    this.#learned = learned
  }

  /** Resolves all references in `settings` except commands, and forgets references that no longer occur. */
  async read(settings: JsonObject): Promise<void> {
    const references = new Set(textsIn(settings).filter(isReference))
    const read = [...references].filter(text => !isCommand(text))
    const outcomes = await Promise.all(read.map(async text => [text, await this.#outcome(text)] as const))
    for (const text of this.#outcomes.keys()) {
      if (references.has(text)) continue
      this.#outcomes.delete(text)
      this.#freshUntil.delete(text)
    }
    for (const [text, outcome] of outcomes) this.#outcomes.set(text, outcome)
  }

  /**
   * Runs those of `commands` whose output is no longer valid, and waits for those that are already running. Returns
   * whether there were any.
   */
  async ask(commands: readonly string[]): Promise<boolean> {
    const stale = commands.filter(text => !((this.#freshUntil.get(text) ?? 0) > this.#sources.now()))
    await Promise.all(stale.map(text => this.#asking.get(text) ?? this.#ask(text)))
    return stale.length > 0
  }

  /** Makes the output of these commands invalid, so that they run again when their values are next needed. */
  expire(commands: readonly string[]): void {
    for (const text of commands) {
      this.#freshUntil.delete(text)
      this.#asking.delete(text)
    }
  }

  #ask(text: string): Promise<void> {
    const ask = async () => {
      const outcome = await this.#outcome(text)
      // The value expired in the meantime, so this may be the old one.
      if (this.#asking.get(text) !== asking) return void (await this.ask([text]))
      this.#asking.delete(text)
      this.#outcomes.set(text, outcome)
      // A failure is not kept, so that a password manager works as soon as it is unlocked.
      if ('value' in outcome) this.#freshUntil.set(text, this.#sources.now() + FRESH_MS)
      this.#learned()
    }
    const asking = ask()
    this.#asking.set(text, asking)
    return asking
  }

  /**
   * `settings` with the values that are known. Commands that have not run yet are left out or left as they are, as
   * `unasked` says.
   */
  resolve(settings: Json, key: string, unasked: 'omit' | 'keep'): Resolved {
    const failures = new Map<string, string>()
    const walk = (value: Json, key: string): Json | undefined => {
      if (Array.isArray(value)) return value.map(item => walk(item, key)).filter(item => item !== undefined)
      if (isObject(value)) {
        const entries = Object.entries(value).map(([name, item]) => [name, walk(item, key ? `${key}.${name}` : name)])
        return Object.fromEntries(entries.filter(([, item]) => item !== undefined)) as JsonObject
      }
      if (typeof value !== 'string') return value
      const misspelt = misspeltReference(value)
      if (misspelt !== null) return void failures.set(key, misspelt)
      if (!isReference(value)) return value
      const outcome = this.#outcomes.get(value)
      if (!outcome) return unasked === 'keep' ? value : undefined
      if ('value' in outcome) return outcome.value
      failures.set(key, outcome.failure)
      return undefined
    }
    return { value: walk(settings, key) as JsonObject, failures }
  }

  async #outcome(text: string): Promise<Outcome> {
    const [, source, name = '', , command = ''] = REFERENCE.exec(text)!
    try {
      if (source === 'env') return { value: this.#environment(name) }
      if (source === 'file') return { value: await contentOf(name) }
      if (source === 'keychain') return { value: await this.#keychain(name) }
      return { value: await this.#sources.command(command) }
    } catch (error) {
      return { failure: messageOf(error) }
    }
  }

  #environment(name: string): string {
    const value = this.#sources.env[name]
    if (!value)
      throw new Error(
        `the environment variable ${name} is not set for the daemon; export it where the daemon is started`,
      )
    return value
  }

  async #keychain(name: string): Promise<string> {
    const value = await this.#sources.keychain(name)
    if (!value) throw new Error(`the keychain has no entry ${name} of the service cadre`)
    return value
  }
}

async function contentOf(file: string): Promise<string> {
  const value = (await readFile(fromHome(file), 'utf8')).replace(/\r?\n$/, '')
  if (!value) throw new Error(`the file ${file} is empty`)
  return value
}
