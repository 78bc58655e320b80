// exec: runs shell commands in the workspace. Each command runs as `sh -c` in its own process group, with a closed
// stdin and a clean environment. Its output is masked and logged line by line while it runs.
//
//   commands: [{ name, run, env?, timeout?, effect? }]   in order; the first that fails ends the phase
//   env: { NAME: value }                                 for all of them; a command's own env wins
//
// The phase's `retry` repeats a failed command only if every command of the phase is idempotent. Commands are
// idempotent unless they have `effect: once`.
//
// A command sees PATH, HOME, LANG, env, CADRE_RUN_ID, CADRE_FILES (the run's files), CADRE_OUT (this phase's folder)
// and CADRE_RESULT (JSON written there becomes `data`). Values are passed through the environment and are never
// inserted into the command's text.

import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { type AgentContext, AgentError, agent, DURATION_PATTERN, type Json, parseDuration, Type } from 'cadre'
import { withSent } from 'cadre/vendors'

/**
 * Milliseconds to wait for the end of the output after the process group has ended. A process that left the group may
 * keep the pipe open.
 */
const DRAIN = 500
const STDOUT_KEPT = 64 * 1024
const LINE_MOST = 64 * 1024
const STDERR_LINES = 5
const RESULT_MOST = 1024 * 1024

const Env = Type.Record(
  Type.String({ pattern: '^[A-Za-z_][A-Za-z0-9_]*$' }),
  Type.Union([Type.String(), Type.Number(), Type.Boolean()]),
  { additionalProperties: false },
)

const Command = Type.Object(
  {
    name: Type.String({ minLength: 1 }),
    run: Type.String({ minLength: 1 }),
    env: Type.Optional(Env),
    timeout: Type.Optional(Type.String({ pattern: DURATION_PATTERN })),
    effect: Type.Optional(Type.Union([Type.Literal('idempotent'), Type.Literal('once')])),
  },
  { additionalProperties: false },
)
type Command = Type.Static<typeof Command>

export default agent({
  type: 'exec',
  version: '1.0.0',
  description: 'Runs shell commands in the workspace.',
  settings: Type.Object({}),
  phase: {
    effect: ({ commands }) => (commands.some(({ effect }) => effect === 'once') ? 'once' : 'idempotent'),
    entry: Type.Object({ commands: Type.Array(Command, { minItems: 1 }), env: Type.Optional(Env) }),
    async run({ commands, env = {} }, context) {
      const resultFile = join(context.stateDir, 'tmp', `result-${context.phase.name}.json`)
      await mkdir(join(context.stateDir, 'tmp'), { recursive: true, mode: 0o700 })
      await rm(resultFile, { force: true })
      const reports = []
      const repeatable = commands.every(({ effect }) => effect !== 'once')
      let wrote = false
      for (const command of commands) {
        wrote ||= command.effect === 'once'
        try {
          const variables = environment(context, { ...env, ...command.env }, resultFile)
          reports.push(await execute(command, context, variables, repeatable))
        } catch (error) {
          // Until the first command with effect `once` has started, a repetition cannot write anything twice.
          throw wrote || !(error instanceof AgentError) ? error : withSent(error, 'no')
        }
      }
      const text = reports.length === 1 ? `${reports[0]!.name} passed` : `${reports.length} commands passed`
      return { text, data: (await readResult(resultFile)) ?? { commands: reports } }
    },
  },
})

function environment(
  context: AgentContext<unknown>,
  env: Record<string, string | number | boolean>,
  resultFile: string,
): Record<string, string> {
  return {
    ...context.env,
    ...Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)])),
    CADRE_FILES: join(context.stateDir, 'files'),
    CADRE_OUT: join(context.stateDir, 'files', context.phase.name),
    CADRE_RESULT: resultFile,
  }
}

async function execute(
  { name, run, timeout }: Command,
  context: AgentContext<unknown>,
  env: Record<string, string>,
  retryable: boolean,
) {
  context.signal.throwIfAborted()
  const started = performance.now()
  const group = start(name, run, env, context)
  const { child } = group
  let ended: 'timeout' | 'aborted' | null = null
  const stop = (why: 'timeout' | 'aborted') => {
    ended ??= why
    group.stop()
  }
  const abort = () => stop('aborted')
  context.signal.addEventListener('abort', abort, { once: true })
  const timer = timeout === undefined ? undefined : setTimeout(() => stop('timeout'), parseDuration(timeout)!)
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
    if (code !== 0 || ended) throw failure(name, ended, timeout, code, child.signalCode, stderr.text(), retryable)
    return { name, exit_code: code, duration_ms: Math.round(performance.now() - started), stdout: stdout.text() }
  } finally {
    clearTimeout(timer)
    context.signal.removeEventListener('abort', abort)
  }
}

function start(name: string, run: string, env: Record<string, string>, context: AgentContext<unknown>) {
  try {
    return context.start(['sh', '-c', run], { cwd: context.workspace, env })
  } catch (cause) {
    throw new AgentError(`command ${name} did not start in ${context.workspace}`, {
      code: 'not_started',
      hint: 'check that the workspace exists and that `sh` is in PATH',
      cause,
    })
  }
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

async function readResult(path: string): Promise<Json | undefined> {
  const file = Bun.file(path)
  if (!(await file.exists())) return undefined
  try {
    if (file.size > RESULT_MOST) throw new Error(`it has ${file.size} bytes, but data may have at most ${RESULT_MOST}`)
    return JSON.parse(await file.text()) as Json
  } catch (cause) {
    throw new AgentError(`CADRE_RESULT must contain JSON that can become data: ${(cause as Error).message}`, {
      code: 'invalid_result',
      hint: 'write one JSON value to this file, and larger results to files in CADRE_OUT',
      cause,
    })
  } finally {
    await rm(path, { force: true })
  }
}
