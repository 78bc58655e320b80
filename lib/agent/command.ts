// Runs programs whose output people read, such as those of exec and ssh.

import { parseDuration } from '../duration.ts'
import { Limit } from '../lived-time.ts'
import { Type } from '../schema/type.ts'
import { sizeText } from '../size.ts'
import type { AgentContext } from './agent-context.ts'
import { readLines } from './commands/output.ts'
import type { Group } from './commands/processes.ts'
import type { Sandbox } from './commands/sandbox.ts'
import { AgentError } from './core/agent-error.ts'
import { beforehand } from './entry.ts'

/** How long the last output is read after the end of a command, and after that of one that was stopped. */
const DRAIN_MS = 5_000
const LAST_MS = 500
const STDOUT_KEPT = 64 * 1024
const STDERR_LINES = 5

export interface LoggedCommand {
  /** The name in the log and in messages. */
  name: string
  command: string[]
  cwd: string
  env: Record<string, string>
  input?: string | undefined
  /** Of `context.sandbox`. */
  sandbox?: Sandbox | null
  /** A duration such as `5m`. */
  timeout?: string | undefined
  /** Whether the command may be repeated after a failure. */
  retryable: boolean
  /** Where the command did not start, and what to do then. */
  notStarted: string
  hint: string
  /** For a command that is run by another program, with which it shares stdin and stdout. */
  talk?: Talk
}

/**
 * How a command is started through another program, such as ssh, and how its exit code is distinguished from that
 * program's.
 */
export interface Talk {
  /** The stdout of the command, without the words of the other program. */
  listen(group: Pick<Group, 'child' | 'stop'>, isStopped: () => boolean): ReadableStream<Uint8Array>
  /** The exit code of the command, if it is known to have ended. It is read after all output. */
  knownCode(): number | null
  /** The exit code that counts when `knownCode` has none. Throws an AgentError where the command did not end. */
  codeOf(exited: number, stderr: string): number
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
  await beforehand(() => context.mayBegin())
  context.signal.throwIfAborted()
  const { name, timeout, retryable, talk } = given
  const started = performance.now()
  const group = start(context, given)
  const { child } = group
  let ended: 'timeout' | 'aborted' | null = null
  let isOver = false
  const stop = (why: 'timeout' | 'aborted') => {
    ended ??= why
    if (isOver) stopReading()
    else group.stop()
  }
  const abort = () => stop('aborted')
  context.signal.addEventListener('abort', abort, { once: true })
  const longest = timeout === undefined ? undefined : parseDuration(timeout)!
  // The time of the command is over when it has ended, even if its output is still read.
  const limit = longest === undefined ? undefined : new Limit(longest, () => stop('timeout'))
  const stdout = talk ? talk.listen(group, () => ended !== null) : child.stdout
  const head = keepHead(STDOUT_KEPT)
  const tail = keepTail(STDERR_LINES)
  const readerOf = (stream: 'stdout' | 'stderr') => ({
    mask: () => context.mask(),
    isFull: () => context.logLimit.isFull,
    line(line: string) {
      context.log(line, { command: name, stream })
      if (stream === 'stderr') tail.push(line)
    },
    missed(lines: number, bytes: number) {
      if (context.logLimit.isFull) context.logLimit.skip(lines, bytes)
      else context.log(`${lines} lines (${sizeText(bytes)}) of ${stream} missing here: they were not read in time`)
    },
  })
  const readings = [
    readLines(stdout, { ...readerOf('stdout'), text: head.push, head: STDOUT_KEPT }),
    readLines(child.stderr, { ...readerOf('stderr'), text() {}, head: 0 }),
  ]
  const stopReading = () => {
    for (const reading of readings) reading.stop()
  }
  try {
    const exited = await child.exited
    isOver = true
    limit?.end()
    group.close()
    for (const reading of readings) reading.drain()
    using _ = new Limit(ended ? LAST_MS : DRAIN_MS, stopReading)
    await Promise.all(readings.map(({ done }) => done))
    const known = talk?.knownCode() ?? null
    // A command that has ended by itself counts as ended, even if its time-out passed at the same moment.
    if (known !== null) ended = null
    const code = known ?? (talk && !ended ? talk.codeOf(exited, tail.text()) : exited)
    const signal = known === null ? child.signalCode : null
    if (code !== 0 || ended) throw failure(name, ended, timeout, code, signal, tail.text(), retryable)
    return { name, exit_code: code, duration_ms: Math.round(performance.now() - started), stdout: head.text() }
  } finally {
    limit?.end()
    context.signal.removeEventListener('abort', abort)
  }
}

function start(
  context: AgentContext<unknown>,
  { name, command, cwd, env, input, sandbox = null, notStarted, hint, talk }: LoggedCommand,
): Group {
  try {
    const stdin = input !== undefined ? { input } : { keepInput: talk !== undefined }
    return context.start(command, { cwd, env, sandbox, ...stdin })
  } catch (cause) {
    if (cause instanceof AgentError) throw cause
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
  const errorText = stderr && `: ${stderr}`
  if (ended === 'aborted') return new AgentError(`command ${name} was stopped`, { code: 'aborted' })
  if (ended === 'timeout') {
    const hint = 'increase the `timeout` of the command, or make the command faster'
    return new AgentError(`command ${name} took longer than ${timeout} and was stopped${errorText}`, {
      code: 'timeout',
      hint,
      retryable,
    })
  }
  const how = signal ? `was ended by ${signal}` : `exited with code ${code}`
  return new AgentError(`command ${name} ${how}${errorText}`, { code: 'exit', retryable })
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
