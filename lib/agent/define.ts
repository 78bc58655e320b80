// What an agent is: the face that every file in `agents/` is written against.
// A definition is data plus one function an action; retries, paging of secrets, files and the ledger are the core's.

import type { Static, TObject, TSchema } from 'typebox'
import type { Json, JsonObject } from '../json.ts'
import { Type } from '../type.ts'
import type { Group } from './processes.ts'

/**
 * What an action does to the outside: nothing, the same thing however often, or something each time.
 * @example effect: entry => (entry.mode === 'replace' ? 'idempotent' : 'once')
 */
export type Effect = 'read' | 'idempotent' | 'once'

/**
 * A file that was written.
 * @example const { bytes }: FileRecord = await context.write(name, reply.body ?? '')
 */
export interface FileRecord {
  name: string
  /** Relative to the run's state folder: `files/<phase>/<name>`. */
  path: string
  bytes: number
  /** Hex. */
  sha256: string
}

/** Of `data` as JSON: a larger result belongs in a file. */
export const MAX_DATA_BYTES = 1_048_576

/**
 * What a function of an agent gives; `data` is what templates of later phases read.
 * @example return { text: `ticket ${id} is open`, data: { id, status: 'open' } }
 */
export interface AgentResult {
  /** One line for people. */
  text: string
  data?: Json
  /** What the outside calls the thing that was written; kept in the receipt. */
  external?: { id?: string; url?: string }
}

export type FileContent = string | Uint8Array | ReadableStream<Uint8Array> | Blob | JsonObject | Json[]

export interface FetchOptions extends Omit<RequestInit, 'signal' | 'redirect'> {
  /** Milliseconds for the answer to one try, from when the other side last took some of a large file; default 60,000. */
  timeout?: number
  /** Most bytes of a reply that `text()`, `json()` and `bytes()` accept; default 64 MiB. A body that is streamed has no bound. */
  maxBytes?: number
  /**
   * Tries in all; default 4. GET and HEAD are repeated on network errors, 408, 429 and 5xx; so is any method of a `read`
   * action, and PUT and DELETE of an `idempotent` one. Everything else is repeated after a complete 429 only.
   */
  attempts?: number
  /** Follow redirects, at most 3; default true for GET and HEAD. */
  follow?: boolean
}

export interface RunIdentity {
  readonly id: string
  readonly name: string | null
  /** `@scope/name`. */
  readonly team: string
  /** Its page on the daemon's dashboard; null while no daemon listens. */
  readonly url: string | null
}

/**
 * What a function of an agent is given beside its entry.
 * @example type Context = AgentContext<Type.Static<typeof Settings>>
 */
export interface AgentContext<S = Record<string, unknown>> {
  /**
   * What the team calls the agent: the name of its file, or of an account (`issues@eu`). Hints name settings with it:
   * `agents.${context.agent}.api_token`.
   */
  readonly agent: string
  /** Where the call is, for messages: `pages.get_page`, or `pages` where there is no action. They begin `[${place}]`. */
  readonly place: string
  readonly settings: S
  /** Fires when the run is cancelled, the phase times out, or the daemon stops. */
  readonly signal: AbortSignal
  log(message: string, fields?: JsonObject): void
  /**
   * Says what this call waits for, such as `the export` or `HTTP 503`. It is shown beside the phase until it is disposed
   * of (`using _ = context.waiting('the export')`), until the time `until` passes (a date, or epoch milliseconds), or
   * until the call returns. `fetch` says so by itself while it waits to try again. What is logged means nothing.
   */
  waiting(reason: string, until?: Date | number): Disposable
  /** The guarded fetch (SSRF rules, retries, bounds). Resolves with any status once retries are used up; rejects with a retryable AgentError when no reply came. */
  fetch(url: string | URL, options?: FetchOptions): Promise<Response>
  /** Refuses what `fetch` would refuse to reach; for a client that makes its own connections. Throws an AgentError `refused` or `dns`. */
  vet(url: string): Promise<void>
  /** Writes `files/<phase>/<name>` whole or not at all. Objects become indented JSON. */
  write(name: string, content: FileContent): Promise<FileRecord>
  /**
   * A file of the run (`files/…`) or the workspace. Throws an AgentError when it is missing or lies outside; before the
   * first `fetch`, `vet` or `start` it says that nothing was sent, as errors of `folder` and `write` do. An agent that
   * sends by other means reads its files first.
   */
  read(path: string): Promise<ReturnType<typeof Bun.file>>
  /** The absolute path of a folder that lies where `read` finds files; `.` is the workspace. Throws likewise. */
  folder(path: string): Promise<string>
  /** Idempotency key of this entry, the same over all attempts. */
  readonly key: string
  readonly attempt: number
  readonly run: RunIdentity
  readonly phase: { readonly name: string }
  /** Absolute path. */
  readonly workspace: string
  /** Absolute path of the run's state folder (files lie under `files/`). */
  readonly stateDir: string
  /** PATH, HOME and LANG of the daemon: all of its environment that a process started by an agent may see. */
  readonly env: Readonly<Record<string, string>>
  /**
   * Starts a process that leads a group of its own, with `CADRE_RUN_ID` beside what `env` gives. It ends with the phase, or
   * before the phase is repeated. Throws what the system says when it does not start.
   */
  start(command: string[], options: { cwd: string; env: Record<string, string> }): Group
  /** A masker of every known secret for bytes that are cut or split before they are recorded, such as a process's output. */
  mask(): { push(chunk: Uint8Array): Uint8Array; end(): Uint8Array }
  /**
   * Makes a value that is no setting known as a secret, such as an access token that was asked for: it is masked, as
   * settings are, in all that is recorded from now on. To be called before the value is sent anywhere, each time it is
   * used: cheap where it is known, and values that were not named for long are forgotten.
   */
  conceal(value: string): void
  /** The event, in a `notify` handler only. */
  readonly event?: NotifyEvent
}

/**
 * What a `notify` handler is told of a run: `context.event`.
 * @example run: (entry, context) => send(entry.message ?? context.event!.message, context)
 */
export interface NotifyEvent {
  name: string
  team: string
  run: { id: string; name: string | null; state: string; reason: string | null }
  phase?: { name: string; state: string; error: string | null }
  /** A sentence that says it all, ready to be sent. */
  message: string
  outputs: Json
}

/**
 * What `doctor` finds out about the credential in the settings.
 * @example return { who: user.email, missing: [], text: context.settings.base_url }
 */
export interface Diagnosis {
  /** Whose it is, as the other side says; null where it cannot be asked. */
  who: string | null
  /** Permissions that some action needs and the credential lacks, in the vendor's words. */
  missing: string[]
  /** What was reached, and what could not be found out, in one line. */
  text: string
}

/** As the core sees it: what `entry` and settings are is known to their schemas, which are checked before. */
export interface Handler {
  /** A function of the entry where the entry decides (http: its method). */
  effect: Effect | ((entry: unknown) => Effect)
  entry: TObject
  run(entry: unknown, context: AgentContext<unknown>): Promise<AgentResult>
  /** Asks the outside whether this entry was already written: its result, or null when it certainly was not. Throws when it cannot tell. */
  find?(entry: unknown, context: AgentContext<unknown>): Promise<AgentResult | null>
}

export interface Action extends Handler {
  direction: 'source' | 'target' | 'phase'
  description?: string
}

export interface AgentDefinition {
  type: 'connector' | 'exec'
  version: string
  description: string
  settings: TObject
  /** Keys that are required because of what is set (git: those of its provider), of these settings, where missing. */
  missing?(settings: unknown): string[]
  /** Asks the outside, by a few cheap reads, whose the credential is and what it lacks. Throws what an action would. */
  doctor?(context: AgentContext<unknown>): Promise<Diagnosis>
  actions?: Record<string, Action>
  source?: Handler
  target?: Handler
  phase?: Handler
  notify?: Handler
}

/** Marks what `agent()` made, so that the catalogue knows an agent from any other export. */
export const AGENT = Symbol.for('cadre.agent')

export interface Agent extends AgentDefinition {
  [AGENT]: true
}

interface HandlerOf<Settings, E extends TObject> {
  effect: Effect | ((entry: Static<E>) => Effect)
  entry: E
  run(entry: Static<E>, context: AgentContext<Settings>): Promise<AgentResult>
  find?(entry: Static<E>, context: AgentContext<Settings>): Promise<AgentResult | null>
}

interface DefinitionOf<
  S extends TObject,
  A extends Record<string, TObject>,
  So extends TObject,
  Ta extends TObject,
  Ph extends TObject,
  No extends TObject,
> {
  type: 'connector' | 'exec'
  version: string
  description: string
  settings: S
  missing?(settings: Static<S>): string[]
  doctor?(context: AgentContext<Static<S>>): Promise<Diagnosis>
  actions?: {
    [K in keyof A]: HandlerOf<Static<S>, A[K]> & { direction: 'source' | 'target' | 'phase'; description?: string }
  }
  source?: HandlerOf<Static<S>, So>
  target?: HandlerOf<Static<S>, Ta>
  phase?: HandlerOf<Static<S>, Ph>
  notify?: HandlerOf<Static<S>, No>
}

/**
 * Declares an agent. The schemas give `entry` and `context.settings` their types.
 * @example export default agent({ type: 'connector', version: '1.0.0', description: '…', settings, actions: { … } })
 */
export function agent<
  S extends TObject,
  A extends Record<string, TObject> = Record<string, TObject>,
  So extends TObject = TObject,
  Ta extends TObject = TObject,
  Ph extends TObject = TObject,
  No extends TObject = TObject,
>(definition: DefinitionOf<S, A, So, Ta, Ph, No>): Agent {
  return { ...(definition as AgentDefinition), [AGENT]: true }
}

/**
 * A setting that is masked wherever it would appear.
 * @example const settings = Type.Object({ base_url: Type.String(), api_token: secret() })
 */
export function secret(options: { description?: string } = {}) {
  return Type.String({ minLength: 1, ...options, 'x-secret': true })
}

export function isSecret(schema: TSchema): boolean {
  return (schema as { 'x-secret'?: boolean })['x-secret'] === true
}

export interface AgentErrorOptions {
  /** Stable and short: `unauthorized`, `not_found`, `timeout` … */
  code?: string
  /** What to do about it. */
  hint?: string
  /** Whether the same call may succeed later; default false. */
  retryable?: boolean
  /** Whether the request may have reached the outside: `no` clears the receipt of a `once` entry; default `unknown` unless a complete 4xx was read. */
  sent?: 'no' | 'unknown'
  cause?: unknown
}

/**
 * What an agent throws: it fails the phase, with a reason that a person can act on.
 * @example throw new AgentError(`there is no item ${ref}`, { code: 'not_found', hint: 'check ref', sent: 'no' })
 */
export class AgentError extends Error {
  override readonly name = 'AgentError'
  readonly code: string
  readonly hint: string | undefined
  readonly retryable: boolean
  readonly sent: 'no' | 'unknown' | undefined

  constructor(message: string, options: AgentErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.code = options.code ?? 'agent_error'
    this.hint = options.hint
    this.retryable = options.retryable ?? false
    this.sent = options.sent
  }
}

/** The same error with another answer to whether the request may have reached the outside. */
export function withSent({ message, code, hint, retryable, cause }: AgentError, sent: 'no' | 'unknown'): AgentError {
  return new AgentError(message, { code, retryable, sent, cause, ...(hint && { hint }) })
}
