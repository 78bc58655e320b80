// Calls an agent once in its own process, for tests in which the process matters: which certificates it trusts, and how
// much memory it uses. The program reads the call from stdin and prints the outcome as JSON.

import { existsSync, readFileSync } from 'node:fs'
import type { AgentResult } from '../../lib/agent/agent-context.ts'
import { createContext } from '../../lib/agent/context.ts'
import { AgentError } from '../../lib/agent/core/agent-error.ts'
import type { Effect } from '../../lib/agent/core/effect.ts'
import type { Agent, Handler } from '../../lib/agent/define.ts'
import { createRedactor } from '../../lib/secrets/redact.ts'

export interface AgentCall {
  agent: string
  /** Or the name of an action. */
  handler: string
  settings: object
  entry: object
  effect: Effect
  /** The folder that is both workspace and state folder. */
  at: string
}

export interface AgentOutcome {
  result?: AgentResult
  error?: { message: string; code: string; hint?: string; retryable: boolean; sent?: string }
  /** In MiB: the peak memory of the process, and its growth since the begin of the call. */
  peak: number
  grown: number
}

export async function agentProcess(call: AgentCall, env: Record<string, string> = {}): Promise<AgentOutcome> {
  const child = Bun.spawn([process.execPath, import.meta.path], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdin: new Blob([JSON.stringify(call)]),
    stdout: 'pipe',
    stderr: 'inherit',
  })
  return JSON.parse(await child.stdout.text())
}

async function perform({ agent, handler, settings, entry, effect, at }: AgentCall): Promise<AgentOutcome> {
  const { default: definition } = (await import(`../../agents/${agent}.ts`)) as { default: Agent }
  const context = createContext({
    agent,
    settings: { ...settings },
    network: { allow: ['127.0.0.1'], literalOrigins: [] },
    redactor: createRedactor([]),
    signal: new AbortController().signal,
    log() {},
    stateDir: at,
    workspace: at,
    outside: false,
    key: 'key',
    attempt: 1,
    run: { id: '0190', name: null, team: '@local/team', created_at: 0, url: null },
    phase: { name: 'phase' },
    effect,
  })
  Bun.gc(true)
  const watch = watchMemory()
  const handlers: Record<string, Handler | undefined> = { ...definition.actions, ...directHandlers(definition) }
  const came = await handlers[handler]!.run(entry, context).then(
    result => ({ result }),
    error => ({ error: described(error) }),
  )
  return { ...came, ...watch() }
}

function directHandlers({ source, target, phase }: Agent) {
  return { source, target, phase }
}

/** The error as an object. `message` is listed because JSON leaves it out of an Error. */
function described(error: unknown): NonNullable<AgentOutcome['error']> {
  if (!(error instanceof AgentError)) throw error
  const { message, code, hint, retryable, sent } = error
  return { message, code, retryable, ...(hint && { hint }), ...(sent && { sent }) }
}

/** Linux records the peak itself; on other systems the memory is polled. */
function watchMemory(): () => Pick<AgentOutcome, 'peak' | 'grown'> {
  const before = process.memoryUsage.rss()
  let seen = before
  const timer = setInterval(() => {
    seen = Math.max(seen, process.memoryUsage.rss())
  }, 5)
  const mebibytes = (bytes: number) => Math.round(bytes / 2 ** 20)
  return () => {
    clearInterval(timer)
    const status = existsSync('/proc/self/status') ? readFileSync('/proc/self/status', 'utf8') : ''
    const kept = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1] ?? 0) * 1024
    const peak = Math.max(seen, kept)
    return { peak: mebibytes(peak), grown: mebibytes(peak - before) }
  }
}

if (import.meta.main) console.log(JSON.stringify(await perform(await Bun.stdin.json())))
