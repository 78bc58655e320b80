// Runs programs whose output people read, such as those of exec and ssh.

import { parseDuration } from '../duration.ts'
import { Type } from '../type.ts'
import { LONGEST_TIMER_MS } from '../wait.ts'
import type { AgentContext } from './agent-context.ts'
import { AgentError } from './agent-error.ts'
import type { Group } from './processes.ts'

/**
 * Milliseconds to wait for the end of the output after the process group has ended. A process that left the group may
 * keep the pipe open.
 */
const DRAIN = 500
const STDOUT_KEPT = 64 * 1024
const LINE_MOST = 64 * 1024
const STDERR_LINES = 5

export interface LoggedCommand {
  /** The name in the log and in messages. */
  name: string
  command: string[]
  cwd: string
  env: Record<string, string>
  input?: string
  /** A duration such as `5m`. */
  timeout?: string | undefined
  /** Whether the command may be repeated after a failure. */
  retryable: boolean
  /** Where the command did not start, and what to do then. */
  notStarted: string
  hint: string
  /** The error for an exit code that is not the command's own; null if it is. */
  meaning?(code: number, stderr: string): AgentError | null
}

/**
 * What `runCommand` returns, as the form of an action's `data`.
 *
 * @example
 * data: Type.Object({ commands: Type.Array(CommandReport) })
 */
export const CommandReport = Type.Object({
  name: Type.String({ description: 'The name of the command.' }),
  exit_code: Type.Integer({ description: 'Its exit code, which is 0.' }),
  duration_ms: Type.Integer({ description: 'How many milliseconds it took.' }),
  stdout: Type.String({ description: 'What it printed, up to 64 KiB.' }),
})
export type CommandReport = Type.Static<typeof CommandReport>

/**
 * Runs a command until it ends. Its output is masked and logged line by line while it runs. Throws an AgentError when it
 * does not exit with 0.
 * @example
 * const { stdout } = await runCommand(context, {
 *   ...{ name: 'version', command: ['tool', '--version'], cwd: context.workspace, env: context.env, retryable: true },
 *   ...{ notStarted: 'here', hint: 'install tool' },
 * })
 */
export async function runCommand(context: AgentContext<unknown>, given: LoggedCommand): Promise<CommandReport> {
  context.signal.throwIfAborted()
  const { name, timeout, retryable } = given
  const started = performance.now()
  const group = start(context, given)
  const { child } = group
  let ended: 'timeout' | 'aborted' | null = null
  const stop = (why: 'timeout' | 'aborted') => {
    ended ??= why
    group.stop()
  }
  const abort = () => stop('aborted')
  context.signal.addEventListener('abort', abort, { once: true })
  const longest = timeout === undefined ? undefined : Math.min(parseDuration(timeout)!, LONGEST_TIMER_MS)
  const timer = longest === undefined ? undefined : setTimeout(() => stop('timeout'), longest)
  const streams = new AbortController()
  const stdout = keepHead(STDOUT_KEPT)
  const stderr = keepTail(STDERR_LINES)
  const drained = Promise.all([
    lines(
      child.stdout,
      context,
      streams.signal,
      line => context.log(line, { command: name, stream: 'stdout' }),
      stdout.push,
    ),
    lines(child.stderr, context, streams.signal, line => {
      context.log(line, { command: name, stream: 'stderr' })
      stderr.push(line)
    }),
  ])
  try {
    const code = await child.exited
    group.close()
    const late = setTimeout(() => streams.abort(), DRAIN)
    await drained
    clearTimeout(late)
    const meant = code !== 0 && !ended ? given.meaning?.(code, stderr.text()) : null
    if (meant) throw meant
    if (code !== 0 || ended) throw failure(name, ended, timeout, code, child.signalCode, stderr.text(), retryable)
    return { name, exit_code: code, duration_ms: Math.round(performance.now() - started), stdout: stdout.text() }
  } finally {
    clearTimeout(timer)
    context.signal.removeEventListener('abort', abort)
  }
}

function start(
  context: AgentContext<unknown>,
  { name, command, cwd, env, input, notStarted, hint }: LoggedCommand,
): Group {
  try {
    return context.start(command, { cwd, env, ...(input !== undefined && { input }) })
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'E2BIG') throw tooLarge(name, env, cause)
    throw new AgentError(`command ${name} did not start ${notStarted}`, { code: 'not_started', hint, cause })
  }
}

/** Linux takes 128 KiB a variable or argument: https://man7.org/linux/man-pages/man2/execve.2.html. */
function tooLarge(name: string, env: Readonly<Record<string, string>>, cause: unknown): AgentError {
  const sizes = Object.entries(env).map(([key, value]) => [key, Buffer.byteLength(value)] as const)
  const [key, bytes] = sizes.toSorted(([, a], [, b]) => b - a)[0] ?? ['', 0]
  const most = bytes > 65_536 ? `; the largest variable is ${key} with ${bytes} bytes` : ''
  const message = `command ${name} did not start, because its variables and arguments are too large for the system${most}`
  const hint = 'give large values to the command in a file, such as an output of an earlier phase'
  return new AgentError(message, { code: 'not_started', hint, cause })
}

function failure(
  name: string,
  ended: 'timeout' | 'aborted' | null,
  timeout: string | undefined,
  code: number,
  signal: string | number | null,
  stderr: string,
  retryable: boolean,
): AgentError {
  const said = stderr && `: ${stderr}`
  if (ended === 'aborted') return new AgentError(`command ${name} was stopped`, { code: 'aborted' })
  if (ended === 'timeout') {
    const hint = 'increase the `timeout` of the command, or make the command faster'
    return new AgentError(`command ${name} took longer than ${timeout} and was stopped${said}`, {
      code: 'timeout',
      hint,
      retryable,
    })
  }
  const how = signal ? `was ended by ${signal}` : `exited with code ${code}`
  return new AgentError(`command ${name} ${how}${said}`, { code: 'exit', retryable })
}

/** Masks the bytes before it splits them, so that no secret is cut in two by a line break or a limit. */
async function lines(
  stream: ReadableStream<Uint8Array>,
  context: AgentContext<unknown>,
  signal: AbortSignal,
  line: (text: string) => void,
  raw?: (text: string) => void,
): Promise<void> {
  const mask = context.mask()
  const decoder = new TextDecoder()
  const reader = stream.getReader()
  signal.addEventListener('abort', () => reader.cancel().catch(() => {}), { once: true })
  let rest = ''
  const take = (text: string) => {
    raw?.(text)
    const parts = (rest + text).split('\n')
    rest = parts.pop()!
    for (const part of parts) line(part.replace(/\r$/, ''))
    for (; rest.length > LINE_MOST; rest = rest.slice(LINE_MOST)) line(rest.slice(0, LINE_MOST))
  }
  for (;;) {
    const { done, value } = await reader.read().catch(() => ({ done: true, value: undefined }))
    if (done || !value) break
    take(decoder.decode(mask.push(value), { stream: true }))
  }
  take(decoder.decode(mask.end()))
  if (rest) line(rest)
}

function keepHead(most: number) {
  let kept = ''
  return {
    push(text: string) {
      if (kept.length < most) kept += text.slice(0, most - kept.length)
    },
    text: () => new TextDecoder().decode(Buffer.from(kept).subarray(0, most), { stream: true }),
  }
}

function keepTail(count: number) {
  const kept: string[] = []
  return {
    push(line: string) {
      kept.push(line.slice(0, 500))
      if (kept.length > count) kept.shift()
    },
    text: () => kept.join('\n').trim(),
  }
}
