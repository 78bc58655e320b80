// Builds the context that an agent's function receives. This is the only place that binds settings, fetch, files, log
// and key to a call.

import { mkdirSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import type { JsonObject } from '../json.ts'
import type { CallTrace } from '../log/trace.ts'
import type { Masked, MaskedText } from '../secrets/masked.ts'
import type { Redactor } from '../secrets/redact.ts'
import { unlessAborted } from '../wait.ts'
import type { AgentContext, AgentResult, FileRecord, NotifyEvent, RunIdentity } from './agent-context.ts'
import type { LogLimit } from './commands/output.ts'
import { startGroup } from './commands/processes.ts'
import { AgentError, withSent } from './core/agent-error.ts'
import { type Effect, onlyReads } from './core/effect.ts'
import type * as Fetch from './fetch.ts'
import type { TeamFolder } from './files/file-rule.ts'
import { folderAt, MOST_SMALL_BYTES, readable, type SmallFile, type Unwritten, writeArtifact } from './files.ts'
import { type Identity, identityAmong } from './identity.ts'
import { jsonApi } from './json-api.ts'
import type { Account } from './net/account.ts'
import type { Lookup } from './net/guard.ts'

export interface ContextOptions {
  /** The agent as the team refers to it: `issues` or `issues@eu`. */
  agent: string
  /** The action that is called. Absent for an agent without actions, for `notify` and for `doctor`. */
  action?: string | undefined
  /**
   * The resolved settings: references such as `${env:…}` have been replaced, and the agent's schema has been checked.
   */
  settings: Record<string, unknown>
  network: Fetch.NetworkPolicy
  /** The addresses that the agent makes from its settings. See `addresses` of its definition. */
  addresses?: (() => readonly string[]) | undefined
  /** Reads an expression of a team for items. */
  expression?: AgentContext['expression']
  /** The account in whose name `fetch` sends requests, and to whose address alone. */
  account?: Account | undefined
  redactor: Redactor
  /** Called for each value that the agent conceals, once `redactor` masks it. */
  conceal?(value: string): void
  signal: AbortSignal
  /** Receives one line. */
  log(message: MaskedText, fields?: Masked<JsonObject>): void
  /** Without it, every line is stored. */
  logLimit?: LogLimit
  /**
   * Called with what the call waits for, and until when. The function that it returns ends the wait.
   */
  waits?: ((reason: MaskedText, until: Date | undefined) => () => void) | undefined
  /** Called before each request, and resolves when a limit of the account lets it begin. */
  pace?: (() => Promise<void>) | undefined
  /** Called before each command, and resolves when it may begin. */
  mayBegin?: (() => Promise<void>) | undefined
  /** Called before a request is sent again, and resolves when a limit lets it. */
  mayRepeat?: (() => Promise<void>) | undefined
  /** Called for each file that is written. */
  wrote?: ((file: FileRecord) => void) | undefined
  /** Called before each request, with whether it may change something. */
  sends?: ((mayWrite: boolean) => void) | undefined
  /** Called with the HTTP status of each reply. */
  replied?: (status: number) => void
  /** Called for each file that the agent reads; whoever gets the handle closes it when the call has ended. */
  holds?: ((handle: FileHandle) => void) | undefined
  /** Receives the small files that are written, which are then not synced. Without it every file is synced. */
  small?: ((file: SmallFile) => void) | undefined
  /** Small files of the tree that are written later, but before the agent can look for them. */
  unwritten?: Omit<Unwritten, 'hold'>
  /** Takes a small file that is then written later. */
  hold?: ((file: SmallFile) => boolean) | undefined
  /** An absolute path, as is `workspace`. */
  stateDir: string
  workspace: string
  /**
   * Whether files outside the workspace may be read. True only for runs that were started on this machine from a path.
   */
  outside: boolean
  /** Further files that may be read, as they are written. */
  given?: ReadonlySet<string>
  /**
   * Whether a run belongs to the same tree as this one. The files that a sub-run receives from the tree may be read.
   */
  sameTree?: (runId: string) => boolean
  /** The folder of the run's team.yml; null for a package. */
  teamFolder?: TeamFolder | null
  /** Where the commands of the team run. Without it, as other processes of the daemon do. */
  sandbox?: AgentContext['sandbox']
  /**
   * The folder in which running processes are recorded, so that the daemon can end them after it was killed. Without it
   * they are not recorded.
   */
  processes?: string
  readonly key: string
  /** Without it, an identity lasts as long as the context. */
  identity?: Identity | undefined
  attempt: number
  run: RunIdentity
  phase: { name: string }
  /** The effect of this call. Where a handler's effect is a function, this is its result for the entry. */
  effect: Effect
  event?: NotifyEvent | undefined
  /** What an earlier attempt has done of the entry. */
  delivered?: (() => AgentResult | null) | undefined
  /** Traces what the call asks of other systems, if runs are traced. */
  trace?: CallTrace | undefined
  /** Resolves names; default the system's resolver. */
  lookup?: Lookup
}

const NO_LIMIT: LogLimit = { isFull: false, skip() {} }

const SHARED_ENVIRONMENT = ['PATH', 'HOME', 'LANG']

/** The part of the daemon's environment that processes started by agents may see. */
export function sharedEnvironment(): Record<string, string> {
  return Object.fromEntries(SHARED_ENVIRONMENT.flatMap(name => (process.env[name] ? [[name, process.env[name]]] : [])))
}

let fetching: Promise<typeof Fetch> | undefined

/** Many processes send no request. An import that was made before costs 4 µs, and each call has a context of its own. */
const loadFetch = (): Promise<typeof Fetch> => (fetching ??= import('./fetch.ts'))

export function createContext(options: ContextOptions): AgentContext {
  const { agent, settings, network, redactor, signal, stateDir, workspace, attempt, run, phase, effect } = options
  const { lookup, trace, addresses, account, pace, mayRepeat } = options
  const unwritten = options.unwritten && { ...options.unwritten, hold: options.hold }
  const { outside, given, sameTree, teamFolder } = options
  const scope = { stateDir, workspace, outside, given, sameTree, teamFolder }
  const log = (message: string, fields?: JsonObject) =>
    options.log(redactor.text(message), fields && redactor.json(fields))
  const waiting = (reason: string, until?: Date | number): Disposable => {
    const time = until === undefined ? undefined : new Date(until)
    if (time && Number.isNaN(time.getTime())) {
      throw new AgentError(`waiting: until must be a valid time, got ${until}`, {
        hint: 'pass a Date or epoch milliseconds',
      })
    }
    const end = options.waits?.(redactor.text(`${reason}`), time)
    return { [Symbol.dispose]: () => end?.() }
  }
  let guarded: Promise<ReturnType<typeof Fetch.guardedFetch>> | undefined
  /** Loaded and created at first use, because many calls send no request. */
  const request: ReturnType<typeof Fetch.guardedFetch> = async (url, init) => {
    guarded ??= loadFetch().then(({ guardedFetch }) =>
      guardedFetch(
        { settings, network, addresses, effect, signal, log, waiting, trace, account, pace, mayRepeat },
        { ...(lookup && { lookup }) },
      ),
    )
    return (await guarded)(url, init)
  }
  let left = MOST_SMALL_BYTES
  const small = (file: SmallFile) => {
    left -= file.bytes.byteLength
    options.small!(file)
  }
  let calledOut = false
  const sends = (mayWrite: boolean) => {
    calledOut = true
    options.sends?.(mayWrite)
  }
  /**
   * Marks an error of a file as `sent: 'no'` when nothing can have been sent yet, so that authors of agents need to
   * know nothing about receipts.
   */
  const here = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw error instanceof AgentError && !calledOut ? withSent(error, 'no') : error
    }
  }
  const context: AgentContext = {
    agent,
    callName: options.action === undefined ? agent : `${agent}.${options.action}`,
    settings,
    signal,
    log,
    logLimit: options.logLimit ?? NO_LIMIT,
    mayBegin: async () => options.mayBegin?.(),
    waiting,
    async fetch(url, init) {
      sends(!onlyReads(init?.method, effect, init?.effect))
      const reply = await request(url, init)
      options.replied?.(reply.status)
      return reply
    },
    api: options => jsonApi(context, options),
    async vet(target) {
      sends(true)
      try {
        const [{ guardOf }, { vetHost }] = await Promise.all([loadFetch(), import('./net/guard.ts')])
        const guard = { ...guardOf({ settings, network, addresses }), ...(lookup && { lookup }) }
        return await unlessAborted(vetHost(target, settings, guard), signal)
      } catch (cause) {
        if (!signal.aborted) throw cause
        throw new AgentError(`${target} was not judged: stopped`, { code: 'aborted', sent: 'no', cause })
      }
    },
    write: (name, content) =>
      here(async () => {
        // Results, the database and the hub contain the names of files.
        if (redactor.text(`${name}`) !== `${name}`) {
          const hint = 'give the file a name without it'
          throw new AgentError('the name of a file contains a secret', { code: 'invalid_name', hint })
        }
        const take = options.small && left > 0 ? small : undefined
        const record = await writeArtifact(stateDir, phase.name, name, content, signal, take, unwritten)
        options.wrote?.(record)
        return record
      }),
    read: path =>
      here(async () => {
        if (typeof path !== 'string' || !path) throw new AgentError('no file is named', { code: 'not_found' })
        await unwritten?.flush()
        return readable(path, scope, options.holds)
      }),
    folder: path =>
      here(async () => {
        await unwritten?.flush()
        return folderAt(path, scope)
      }),
    get env() {
      return sharedEnvironment()
    },
    start(command, { cwd, env, input, keepInput, sandbox }) {
      sends(true)
      unwritten?.flushNow()
      // A run gets its folder with its first file, and a process cannot start in a folder that does not exist.
      if (cwd === stateDir) mkdirSync(stateDir, { recursive: true, mode: 0o700 })
      const traced = trace ? { TRACEPARENT: trace.traceparent, ...env } : env
      return startGroup(command, {
        ...{ cwd, env: traced, input, keepInput, sandbox },
        runId: run.id,
        folder: options.processes ?? null,
      })
    },
    async sandbox(needs) {
      await unwritten?.flush()
      return (await options.sandbox?.(needs)) ?? null
    },
    expression(text, inputs) {
      if (options.expression) return options.expression(text, inputs)
      throw new AgentError('there are no expressions here', { code: 'internal', sent: 'no' })
    },
    mask: () => redactor.stream(),
    conceal(value) {
      redactor.add(value)
      options.conceal?.(value)
    },
    get key() {
      return options.key
    },
    identity: options.identity ?? identityAmong(new Map(), ''),
    attempt,
    get delivered() {
      return options.delivered?.() ?? null
    },
    run,
    phase,
    workspace,
    get stateDir() {
      unwritten?.flushNow()
      return stateDir
    },
    ...(options.event && { event: options.event }),
  }
  return context
}
