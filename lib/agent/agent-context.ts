// What an agent's function gets besides its entry, and what it returns. `createContext` in context.ts makes it.

import type { Json, JsonObject } from '../json.ts'
import type { LogLimit } from './commands/output.ts'
import type { Group } from './commands/processes.ts'
import type { Sandbox } from './commands/sandbox.ts'
import type { AgentResult } from './core/agent-result.ts'
import type { Identity } from './identity.ts'
import type { Api, ApiOptions, FetchOptions, VettedHost } from './net/requests.ts'

export type { AgentResult }

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

export type FileContent = string | Uint8Array | ReadableStream<Uint8Array> | Blob | JsonObject | Json[]

export interface RunIdentity {
  readonly id: string
  readonly name: string | null
  /** `@scope/name`. */
  readonly team: string
  /** When the run was created, in epoch milliseconds. The time in its id may be later. */
  readonly created_at: number
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
   * begin with `[${callName}]`.
   */
  readonly callName: string
  readonly settings: S
  /** Fires when the run is cancelled, the phase times out, or the daemon stops. */
  readonly signal: AbortSignal
  log(message: string, fields?: JsonObject): void
  /** Whether the log still stores lines. `runCommand` only counts what a command prints beyond that. */
  readonly logLimit: LogLimit
  /** Resolves when a `limit` of the team lets the next command begin. `runCommand` asks before each. */
  mayBegin(): Promise<void>
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
   * A client of a JSON API, on `fetch`. Errors say what failed, with the status, the vendor's message and the setting.
   * @example
   * const call = context.api({ base: context.settings.base_url, headers: { authorization }, setting: 'api_token' })
   * const { level } = await call(`get level of ${ref}`, `/levels/${pathSegment(ref)}`, { reply: Level })
   */
  api(options: ApiOptions): Api
  /**
   * Judges a host as `fetch` does, for a client of another protocol, which must call it before it sends anything.
   * `target` is a host, `host:port` or a URL of any scheme. Hosts that the agent's settings name are allowed; other
   * loopback and private addresses only when `network.allow` has them. Connect to the returned address, not to the
   * name, because a name may resolve to another address a moment later. Throws an AgentError `refused`, `dns` or
   * `invalid_url`, all with `sent: 'no'`, and `aborted` when the run is stopped.
   * @example
   * const { address, host } = await context.vet(`${context.settings.host}:6379`)
   * const socket = tls.connect({ host: address, port: 6379, servername: host })
   */
  vet(target: string): Promise<VettedHost>
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
  /**
   * What the vendor knows this entry by, where it wants an id of its own kind instead of `key`. `make` asks for one or
   * makes one, and is called once: its text, which must not be secret, is on disk before the promise resolves, and is the
   * same in all attempts, after a restart, `retry` and `resume`. Without `make` the promise resolves to null while there
   * is none, so that `find` knows that nothing was sent.
   * @example const id = await context.identity(() => newId(context))
   */
  readonly identity: Identity
  readonly attempt: number
  /** What an earlier attempt of this entry has done of it, as its error said (`partial`); null if none said so. */
  readonly delivered: AgentResult | null
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
   * Starts a process in its own process group, with `CADRE_RUN_ID` added to `env`. It reads `input` from its stdin,
   * which is closed otherwise; with `keepInput` it stays open, and the caller writes to `child.stdin`. The group is ended
   * with the phase; if the daemon is killed, it is ended before the phase is repeated. What it prints is read under one
   * budget of all processes, so that none of them delays other work. Throws the system's error when the process cannot
   * start.
   */
  start(
    command: string[],
    options: {
      cwd: string
      env: Record<string, string>
      input?: string | Uint8Array
      keepInput?: boolean
      sandbox?: Sandbox | null
    },
  ): Group
  /**
   * The sandbox in which the owner of the machine wants the commands of this team, for `start`; null for none. It shows
   * the workspace, the run's files and the folders `writes`, and no other. Throws an AgentError `sandbox` when the
   * commands must not run here.
   */
  sandbox(needs: { writes: readonly string[]; network: boolean }): Promise<Sandbox | null>
  /**
   * Reads a CEL expression that a team writes for each item of a list. It may name `item`, `index` and the given `inputs`.
   * It can reach nothing else, and its work is bounded. Throws where the expression is wrong; so does what it returns.
   * @example
   * const isLate = context.expression('item.days > inputs.most', { most: 3 })
   * const late = items.filter((item, index) => isLate(item, index) === true)
   */
  expression(text: string, inputs?: JsonObject): (item: Json, index: number) => Json
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
  run: {
    id: string
    name: string | null
    state: string
    reason: string | null
    /** Who or what started it, as its record says; null for a sub-run. */
    started_by?: Json
  }
  phase?: { name: string; state: string; error: string | null }
  /** A complete sentence about the event, ready to be sent. */
  message: string
  outputs: Json
}
