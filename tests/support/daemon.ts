// The real daemon and its command line as processes, each with its own home. They are stopped when the tests end.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { RunRecord } from '../../lib/run/engine.ts'
import { folder, removeFolders } from './folder.ts'
import { watchHome } from './left.ts'
import { environmentAt } from './program.ts'

/**
 * `bun run test` compiles cadre first and names the program here: it starts in half of the processor time. Without it
 * the sources are started.
 */
const SOURCES = [process.execPath, join(import.meta.dir, '../../daemon.ts')]
const PROGRAM = process.env.CADRE_TEST_PROGRAM ? [process.env.CADRE_TEST_PROGRAM] : SOURCES

interface Reply {
  status: number
  headers: Headers
  // biome-ignore lint/suspicious/noExplicitAny: the bodies of all calls.
  body: any
}

export interface RunningDaemon {
  readonly home: string
  readonly url: string
  readonly token: string
  readonly pid: number
  /** Everything on stdout and stderr so far. */
  readonly output: { stdout: string; stderr: string }
  /** Sends a POST with a JSON body. `headers` are added to the default headers or replace them. */
  post(path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply>
  /** The `data` of a call that must succeed. */
  // biome-ignore lint/suspicious/noExplicitAny: the data of all calls.
  call<T = any>(path: string, body?: object, headers?: Record<string, string>): Promise<T>
  /** The `payload.data` of a call with a message envelope. */
  // biome-ignore lint/suspicious/noExplicitAny: the data of all calls.
  envelope<T = any>(path: string, type: string, payload?: object): Promise<T>
  /** The record of a run once it has ended. */
  ended(runId: string): Promise<RunRecord>
  /** The exit code, once the process has ended. */
  readonly exited: Promise<number>
  /** Sends SIGTERM, and returns the exit code and the time until the exit. */
  stop(): Promise<{ code: number; ms: number }>
  kill(signal: NodeJS.Signals): Promise<void>
}

export interface SpawnOptions {
  home?: string
  env?: Record<string, string>
  /** A command that starts the daemon, such as one that reduces its privileges. */
  through?: string[]
}

const running = new Set<Bun.Subprocess>()

// A storm that somebody stops would otherwise leave its daemons behind, and what they work in.
for (const [signal, code] of [
  ['SIGINT', 130],
  ['SIGTERM', 143],
] as const) {
  process.once(signal, async () => {
    await killProcesses()
    removeFolders()
    process.exit(code)
  })
}

/**
 * Called when all tests of a process have ended (preload.ts). An `afterAll` here would belong to the file that imports
 * this one first.
 */
export async function killProcesses(): Promise<void> {
  const left = [...running]
  for (const child of left) child.kill('SIGKILL')
  await Promise.all(left.map(child => child.exited))
}

/** The environment of the processes, without the developer's own settings. */
function environment(home: string, env: Record<string, string> = {}): Record<string, string> {
  watchHome(env.CADRE_HOME ?? home)
  return { ...environmentAt(home), LANG: 'C.UTF-8', CADRE_HOME: home, CADRE_LOG_FORMAT: 'json', ...env }
}

/** Starts `bun daemon.ts serve` on a free port and waits for its first line. */
export async function spawnDaemon({ home = folder(), env, through = [] }: SpawnOptions = {}): Promise<RunningDaemon> {
  const child = Bun.spawn([...through, ...PROGRAM, 'serve', '--port', '0'], {
    cwd: home,
    env: environment(home, env),
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  running.add(child)
  const output = { stdout: '', stderr: '' }
  const url = Promise.withResolvers<string>()
  const said = collect(child.stderr, text => (output.stderr += text))
  void collect(child.stdout, text => {
    output.stdout += text
    const listening = /^daemon listening on (\S+)\n/.exec(output.stdout)
    if (listening) url.resolve(listening[1]!)
  })
  // The last output may be read only after the exit is known.
  void Promise.all([child.exited, said]).then(([code]) =>
    url.reject(new Error(`the daemon exited with ${code}: ${output.stderr}`)),
  )
  return control(child, home, await url.promise, output)
}

/** The calls to a daemon that serves `home` at `url`. */
export function callsOf(home: string, url: string) {
  const post: RunningDaemon['post'] = async (path, body = {}, headers = {}) => {
    const reply = await fetch(url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: typeof body === 'string' ? body : JSON.stringify(body),
    })
    return { status: reply.status, headers: reply.headers, body: await reply.json() }
  }
  const call: RunningDaemon['call'] = async (path, body, headers) => {
    const reply = await post(path, body, headers)
    if (!reply.body.ok) throw new Error(`${path} answered ${reply.status}: ${JSON.stringify(reply.body.error)}`)
    return reply.body.data
  }
  return {
    home,
    url,
    token: readFileSync(join(home, 'token'), 'utf8').trim(),
    post,
    call,
    async envelope(path: string, type: string, payload: object = {}) {
      const message = { type, version: 1, id: 'test', timestamp: Date.now(), run_id: null, instance_id: null, payload }
      const { status, body } = await post(path, message)
      if (body.type !== 'ok') throw new Error(`${path} answered ${status}: ${JSON.stringify(body.payload)}`)
      return body.payload.data
    },
    async ended(runId: string) {
      for (;;) {
        const run = await call<RunRecord>('/v1/runs/get', { run_id: runId })
        if (run.completed_at !== null) return run
        await Bun.sleep(20)
      }
    },
  }
}

function control(child: Bun.Subprocess, home: string, url: string, output: RunningDaemon['output']): RunningDaemon {
  const exit = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    const code = await child.exited
    running.delete(child)
    return code
  }
  return {
    ...callsOf(home, url),
    pid: child.pid,
    exited: child.exited,
    output,
    async stop() {
      const started = performance.now()
      const code = await exit('SIGTERM')
      return { code, ms: performance.now() - started }
    },
    async kill(signal) {
      await exit(signal)
    },
  }
}

export async function collect(stream: ReadableStream<Uint8Array>, take: (text: string) => void): Promise<void> {
  const decoder = new TextDecoder()
  for await (const chunk of stream) take(decoder.decode(chunk, { stream: true }))
}

export interface CommandResult {
  code: number
  stdout: string
  stderr: string
}

/** Runs `bun daemon.ts …` and waits until it exits. */
export async function command(
  args: string[],
  options: { home: string; cwd?: string; stdin?: string; env?: Record<string, string> },
): Promise<CommandResult> {
  return ended(startCommand(args, options))
}

async function ended(child: ReturnType<typeof startProgram>): Promise<CommandResult> {
  const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code, stdout, stderr }
}

/** Runs `bun daemon.ts …` of this repository, for what a compiled program cannot do. */
export async function sourceCommand(args: string[], { home }: { home: string }): Promise<CommandResult> {
  return ended(startProgram([...SOURCES, ...args], { cwd: home, env: environment(home), stdin: '', home }))
}

/** Starts `bun daemon.ts …` and leaves it running. */
export function startCommand(
  args: string[],
  { home, cwd = home, stdin = '', env }: { home: string; cwd?: string; stdin?: string; env?: Record<string, string> },
) {
  return startProgram([...PROGRAM, ...args], { cwd, env: environment(home, env), stdin, home })
}

/** Starts `bun daemon.ts …` for somebody who writes to it while it runs, in front of the words of `through`. */
export function openCommand(args: string[], { home, through = [] }: { home: string; through?: string[] }) {
  watchHome(home)
  const child = Bun.spawn([...through, ...PROGRAM, ...args], {
    cwd: home,
    env: environment(home),
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  running.add(child)
  void child.exited.then(() => running.delete(child))
  return child
}

/** Starts a program that works on this home, such as an installed cadre, and leaves it running. */
export function startProgram(
  args: string[],
  { home, cwd, stdin, env }: { home: string; cwd: string; stdin: string; env: Record<string, string> },
) {
  watchHome(home)
  const child = Bun.spawn(args, { cwd, env, stdin: Buffer.from(stdin), stdout: 'pipe', stderr: 'pipe' })
  running.add(child)
  void child.exited.then(() => running.delete(child))
  return child
}

/** Creates a folder with these files and returns its path. */
export function files(contents: Record<string, string>): string {
  const path = folder()
  for (const [name, text] of Object.entries(contents)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), text)
  }
  return path
}
