// What an agent's function is given: the one place that binds settings, fetch, files, log and key to a call.

import type { JsonObject } from '../json.ts'
import type { Redactor } from '../redact.ts'
import {
  type AgentContext,
  AgentError,
  type Effect,
  type FileRecord,
  type NotifyEvent,
  type RunIdentity,
  withSent,
} from './define.ts'
import { guardedFetch, guardOf, type NetworkPolicy } from './fetch.ts'
import { folderAt, MOST_SMALL_BYTES, readable, type SmallFile, writeArtifact } from './files.ts'
import { vet } from './guard.ts'
import { startGroup } from './processes.ts'

export interface ContextOptions {
  /** What the team calls the agent: `issues`, or `issues@eu`. */
  agent: string
  /** The action that is called; none where the agent has none, for `notify`, and for a doctor. */
  action?: string | undefined
  /** Resolved: `${env:…}` and its like replaced, checked against the agent's schema. */
  settings: Record<string, unknown>
  network: NetworkPolicy
  redactor: Redactor
  /** Told of each value that the agent conceals, which `redactor` knows by then; default nobody. */
  conceal?(value: string): void
  signal: AbortSignal
  /** Takes one line that is masked already. */
  log(message: string, fields?: JsonObject): void
  /** Is told what the call waits for, masked, and until when; what it returns ends the wait. By default nobody is. */
  waits?: (reason: string, until: Date | undefined) => () => void
  /** Is told of each file that is written. */
  wrote?: (file: FileRecord) => void
  /** Is told of the status of each reply. */
  replied?: (status: number) => void
  /** Takes the small files that are written, which are not synced then; by default every file is synced. */
  small?: (file: SmallFile) => void
  /** Absolute paths. */
  stateDir: string
  workspace: string
  /** Whether files beyond the workspace may be read: runs started on this machine from a path. */
  outside: boolean
  /** Whether a run is of the same tree as this one: what sub-runs are given as files may be read. */
  sameTree?: (runId: string) => boolean
  /** Where processes are remembered until they end, for the start after a kill; default nowhere. */
  processes?: string
  key: string
  attempt: number
  run: RunIdentity
  phase: { name: string }
  /** Of this call: where a handler's effect is a function, its answer for the entry. */
  effect: Effect
  event?: NotifyEvent | undefined
}

const SHARED_ENVIRONMENT = ['PATH', 'HOME', 'LANG']

/** All of the daemon's environment that a process which it starts for somebody may see. */
export function sharedEnvironment(): Record<string, string> {
  return Object.fromEntries(SHARED_ENVIRONMENT.flatMap(name => (process.env[name] ? [[name, process.env[name]]] : [])))
}

export function createContext(options: ContextOptions): AgentContext {
  const { agent, settings, network, redactor, signal, stateDir, workspace, key, attempt, run, phase, effect } = options
  const places = { stateDir, workspace, outside: options.outside, sameTree: options.sameTree }
  const log = (message: string, fields?: JsonObject) =>
    options.log(redactor.text(message), fields && redactor.json(fields))
  const waiting = (reason: string, until?: Date | number): Disposable => {
    const time = until === undefined ? undefined : new Date(until)
    if (time && Number.isNaN(time.getTime())) {
      throw new AgentError(`waiting: until is no time: ${until}`, { hint: 'give a date, or epoch milliseconds' })
    }
    const end = options.waits?.(redactor.text(`${reason}`), time)
    return { [Symbol.dispose]: () => end?.() }
  }
  let guarded: ReturnType<typeof guardedFetch> | undefined
  /** Made when first used: many calls of agents send nothing. */
  const request: ReturnType<typeof guardedFetch> = (url, init) => {
    guarded ??= guardedFetch({ settings, network, effect, signal, log, waiting })
    return guarded(url, init)
  }
  let left = MOST_SMALL_BYTES
  const small = (file: SmallFile) => {
    left -= file.bytes.byteLength
    options.small!(file)
  }
  let calledOut = false
  /** A file that fails before anything can have left says so, that no author has to know of receipts. */
  const here = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw error instanceof AgentError && !calledOut ? withSent(error, 'no') : error
    }
  }
  return {
    agent,
    place: options.action === undefined ? agent : `${agent}.${options.action}`,
    settings,
    signal,
    log,
    waiting,
    async fetch(url, init) {
      calledOut = true
      const reply = await request(url, init)
      options.replied?.(reply.status)
      return reply
    },
    async vet(url) {
      calledOut = true
      await vet(new URL(url), guardOf({ settings, network }))
    },
    write: (name, content) =>
      here(async () => {
        const take = options.small && left > 0 ? small : undefined
        const record = await writeArtifact(stateDir, phase.name, name, content, signal, take)
        options.wrote?.(record)
        return record
      }),
    read: path =>
      here(async () => {
        if (typeof path !== 'string' || !path) throw new AgentError('no file is named', { code: 'not_found' })
        return readable(path, places)
      }),
    folder: path => here(() => folderAt(path, places)),
    get env() {
      return sharedEnvironment()
    },
    start(command, { cwd, env }) {
      calledOut = true
      return startGroup(command, { cwd, env, runId: run.id, folder: options.processes ?? null })
    },
    mask: () => redactor.stream(),
    conceal(value) {
      redactor.add(value)
      options.conceal?.(value)
    },
    key,
    attempt,
    run,
    phase,
    workspace,
    stateDir,
    ...(options.event && { event: options.event }),
  }
}
