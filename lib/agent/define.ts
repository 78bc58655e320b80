// The interface of an agent: every file in `agents/` is written against it. A definition is data and one function for
// each action. The core does everything else: retries, masking of secrets, files and the ledger.

import type { Static, TObject, TSchema } from 'typebox'
import type { Json, JsonObject } from '../json.ts'
import { Type } from '../type.ts'
import type { Group } from './processes.ts'

/**
 * What an action changes outside: `read` changes nothing, `idempotent` has the same result however often it is
 * repeated, and `once` has a new effect each time.
 * @example effect: entry => (entry.mode === 'replace' ? 'idempotent' : 'once')
 */
export type Effect = 'read' | 'idempotent' | 'once'

/**
 * The record of a file that was written.
 * @example const { bytes }: FileRecord = await context.write(name, reply.body ?? '')
 */
export interface FileRecord {
  name: string
  /** Relative to the run's state folder: `files/<phase>/<name>`. */
  path: string
  bytes: number
  /** In hexadecimal. */
  sha256: string
}

/** Of `data` as JSON: a larger result belongs in a file. */
export const MAX_DATA_BYTES = 1_048_576

/**
 * The result of an agent's function. Templates of later phases read `data`.
 * @example return { text: `ticket ${id} is open`, data: { id, status: 'open' } }
 */
export interface AgentResult {
  /** One line that summarises the result for people. */
  text: string
  data?: Json
  /** The vendor's id and address of what was written. They are kept in the receipt. */
  external?: { id?: string; url?: string }
}

export type FileContent = string | Uint8Array | ReadableStream<Uint8Array> | Blob | JsonObject | Json[]

export interface FetchOptions extends Omit<RequestInit, 'signal' | 'redirect'> {
  /**
   * Milliseconds to wait for the reply to one attempt; default 60,000. While a large file is sent, the time starts anew
   * with each part that the server accepts.
   */
  timeout?: number
  /**
   * Maximum number of bytes that `text()`, `json()` and `bytes()` accept; default 64 MiB. A body that is streamed has
   * no limit.
   */
  maxBytes?: number
  /**
   * Maximum number of attempts; default 4. GET and HEAD are retried on network errors, 408, 429 and 5xx. The same
   * applies to any method of a `read` action, and to PUT and DELETE of an `idempotent` one. Every other request is
   * retried only after a complete 429.
   */
  attempts?: number
  /** Whether to follow up to 3 redirects; default true for GET and HEAD. */
  follow?: boolean
}

export interface RunIdentity {
  readonly id: string
  readonly name: string | null
  /** `@scope/name`. */
  readonly team: string
  /** The address of the run on the daemon's dashboard; null while no daemon listens. */
  readonly url: string | null
}

/**
 * The second argument of an agent's function, after the entry.
 * @example type Context = AgentContext<Type.Static<typeof Settings>>
 */
export interface AgentContext<S = Record<string, unknown>> {
  /**
   * The agent as the team refers to it: the name of its file, or of an account (`issues@eu`). Use it in hints that name
   * settings: `agents.${context.agent}.api_token`.
   */
  readonly agent: string
  /**
   * The agent and action of the call, for messages: `pages.get_page`, or `pages` for an agent without actions. Messages
   * begin with `[${place}]`.
   */
  readonly place: string
  readonly settings: S
  /** Fires when the run is cancelled, the phase times out, or the daemon stops. */
  readonly signal: AbortSignal
  log(message: string, fields?: JsonObject): void
  /**
   * Reports what this call waits for, such as `the export` or `HTTP 503`. The reason is shown with the phase until the
   * returned object is disposed of (`using _ = context.waiting('the export')`), until the time `until` (a Date or epoch
   * milliseconds), or until the call returns. `fetch` reports its own waits before a retry. Log lines have no influence
   * on this.
   */
  waiting(reason: string, until?: Date | number): Disposable
  /**
   * The guarded fetch (SSRF rules, retries, limits). It resolves with any status once no retry is left, and rejects
   * with a retryable AgentError when no reply arrived.
   */
  fetch(url: string | URL, options?: FetchOptions): Promise<Response>
  /**
   * Checks a URL as `fetch` does, for clients that open their own connections. Throws an AgentError `refused` or `dns`.
   */
  vet(url: string): Promise<void>
  /** Writes `files/<phase>/<name>` atomically. Objects become indented JSON. */
  write(name: string, content: FileContent): Promise<FileRecord>
  /**
   * Opens a file of the run (`files/…`) or of the workspace. Throws an AgentError when the file is missing or lies
   * outside both. Before the first `fetch`, `vet` or `start` the error has `sent: 'no'`; the same applies to `folder`
   * and `write`. An agent that sends by other means must therefore read its files first.
   */
  read(path: string): Promise<ReturnType<typeof Bun.file>>
  /** The absolute path of a folder, with the same rules as `read`; `.` is the workspace. */
  folder(path: string): Promise<string>
  /** Idempotency key of this entry. It is the same in all attempts. */
  readonly key: string
  readonly attempt: number
  readonly run: RunIdentity
  readonly phase: { readonly name: string }
  /** Absolute path. */
  readonly workspace: string
  /** Absolute path of the run's state folder. Its files are in `files/`. */
  readonly stateDir: string
  /**
   * PATH, HOME and LANG of the daemon. A process started by an agent may see no other part of the daemon's environment.
   */
  readonly env: Readonly<Record<string, string>>
  /**
   * Starts a process in its own process group, with `CADRE_RUN_ID` added to `env`. The group is ended with the phase;
   * if the daemon is killed, it is ended before the phase is repeated. Throws the system's error when the process
   * cannot start.
   */
  start(command: string[], options: { cwd: string; env: Record<string, string> }): Group
  /** Masks every known secret in a byte stream that arrives in pieces, such as the output of a process. */
  mask(): { push(chunk: Uint8Array): Uint8Array; end(): Uint8Array }
  /**
   * Registers a value that is not in the settings as a secret, such as an access token that the agent has requested. It
   * is masked, like secret settings, in everything that is recorded from now on. Call it each time before the value is
   * sent, because values that were not registered for a long time are forgotten; a repeated call is cheap.
   */
  conceal(value: string): void
  /** The event; present only in a `notify` handler. */
  readonly event?: NotifyEvent
}

/**
 * The event of a run that a `notify` handler receives as `context.event`.
 * @example run: (entry, context) => send(entry.message ?? context.event!.message, context)
 */
export interface NotifyEvent {
  name: string
  team: string
  run: { id: string; name: string | null; state: string; reason: string | null }
  phase?: { name: string; state: string; error: string | null }
  /** A complete sentence about the event, ready to be sent. */
  message: string
  outputs: Json
}

/**
 * What `doctor` reports about the credential in the settings.
 * @example return { who: user.email, missing: [], text: context.settings.base_url }
 */
export interface Diagnosis {
  /** The owner of the credential according to the vendor; null when the vendor cannot be asked. */
  who: string | null
  /** Permissions that some action needs and the credential lacks, as the vendor names them. */
  missing: string[]
  /** One line that says what was reached, and what could not be determined. */
  text: string
}

/**
 * A handler as the core sees it. `entry` and the settings are not typed here, because they are checked against their
 * schemas before the call.
 */
export interface Handler {
  /** A function where the effect depends on the entry, as it does on the method of the http agent. */
  effect: Effect | ((entry: unknown) => Effect)
  entry: TObject
  run(entry: unknown, context: AgentContext<unknown>): Promise<AgentResult>
  /**
   * Asks the vendor whether this entry was already written. Returns its result, or null when it certainly was not
   * written. Throws when that cannot be determined.
   */
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
  /**
   * The keys that are missing although other settings require them, such as those of the provider that the git agent
   * uses.
   */
  missing?(settings: unknown): string[]
  /**
   * Asks the vendor, with a few cheap reads, who owns the credential and which permissions it lacks. Throws the same
   * errors as an action.
   */
  doctor?(context: AgentContext<unknown>): Promise<Diagnosis>
  actions?: Record<string, Action>
  source?: Handler
  target?: Handler
  phase?: Handler
  notify?: Handler
}

/** Marks values made by `agent()`, so that the catalogue can tell an agent from any other export. */
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
 * Declares an agent. The types of `entry` and `context.settings` are derived from the schemas.
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
 * The schema of a secret setting, which is masked wherever it would appear.
 * @example const settings = Type.Object({ base_url: Type.String(), api_token: secret() })
 */
export function secret(options: { description?: string } = {}) {
  return Type.String({ minLength: 1, ...options, 'x-secret': true })
}

export function isSecret(schema: TSchema): boolean {
  return (schema as { 'x-secret'?: boolean })['x-secret'] === true
}

export interface AgentErrorOptions {
  /** A short, stable code: `unauthorized`, `not_found`, `timeout` … */
  code?: string
  /** What the reader can do about it. */
  hint?: string
  /** Whether the same call may succeed if it is repeated later; default false. */
  retryable?: boolean
  /**
   * Whether the request may have reached the vendor. `no` removes the receipt of a `once` entry. The default is
   * `unknown`, unless a complete 4xx reply was read.
   */
  sent?: 'no' | 'unknown'
  cause?: unknown
}

/**
 * The error that an agent throws. It fails the phase with a message that a person can act on.
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

/** The same error with another value of `sent`. */
export function withSent({ message, code, hint, retryable, cause }: AgentError, sent: 'no' | 'unknown'): AgentError {
  return new AgentError(message, { code, retryable, sent, cause, ...(hint && { hint }) })
}
