// Runs the command of a `${cmd:COMMAND}` reference, such as that of a password manager, and returns its output. It leads
// its own process group, which is ended with it or at the time-out. Errors never contain what it printed on stdout.

import { startGroup } from '../agent/commands/processes.ts'
import { sharedEnvironment } from '../agent/context.ts'
import { formatDuration } from '../duration.ts'
import { Limit } from '../lived-time.ts'
import { commandLine } from '../program/called-as.ts'
import { textIn } from '../stream.ts'
import { listed } from '../text/spelling.ts'
import { variablesOf } from './command-environment.ts'

export interface CommandOptions {
  /** The working directory. */
  cwd: string
  /** The environment of the daemon, and the names of the variables that the command sees beside PATH, HOME and LANG. */
  env: Readonly<Record<string, string | undefined>>
  names: readonly string[]
  /**
   * The folder in which the running process is recorded, so that the next start can end it after a kill; null to record
   * nothing.
   */
  processes: string | null
  /** Milliseconds. */
  timeout: number
  signal: AbortSignal
}

/** Maximum size of the output. Longer output cannot be a credential. */
const MOST = 1024 * 1024
/** Number of characters of stderr that an error shows. */
const ERROR_OUTPUT = 1_000
/** Milliseconds to wait for remaining output after the command has ended. */
const DRAIN_MS = 500

/** The stdout of the command without trailing line ends. Throws when the command fails, prints nothing or hangs. */
export async function outputOf(command: string, options: CommandOptions): Promise<string> {
  const { cwd, env, names, processes, timeout, signal } = options
  signal.throwIfAborted()
  const group = startGroup(['sh', '-c', command], {
    cwd,
    env: { ...variablesOf(names, env), ...sharedEnvironment() },
    runId: 'settings',
    folder: processes,
  })
  const gone = new AbortController()
  const texts = Promise.all([
    textIn(group.child.stdout, {
      most: MOST,
      onMore: () => end(`printed more than ${MOST} bytes`),
      until: gone.signal,
    }),
    textIn(group.child.stderr, { most: MOST, until: gone.signal }),
  ])
  let ended: string | null = null
  const failure = (how: string, stderr: string) => {
    const errorOutput = stderr.trim().slice(-ERROR_OUTPUT)
    return new Error(`the command ${how}${errorOutput && `: ${errorOutput}`} (${sight(names, env)})`)
  }
  const end = (reason: string) => {
    ended ??= reason
    group.close()
    gone.abort()
  }
  const stop = () => end('was stopped, because the daemon stops')
  const limit = new Limit(timeout, () => end(`did not end within ${formatDuration(timeout)} and was stopped`))
  let drained: Limit | undefined
  signal.addEventListener('abort', stop, { once: true })
  try {
    const code = await group.child.exited
    limit.end()
    group.close()
    // A process that left the group may keep the pipes open forever.
    drained = new Limit(DRAIN_MS, () => gone.abort())
    const [output, errorOutput] = await texts
    if (ended !== null) throw failure(ended, errorOutput)
    if (code !== 0) throw failure(`exited with code ${code}`, errorOutput)
    const value = output.replace(/(\r?\n)+$/, '')
    if (!value) throw failure('printed nothing', errorOutput)
    return value
  } finally {
    limit.end()
    drained?.end()
    signal.removeEventListener('abort', stop)
  }
}

/** What the command saw of the environment, and how it sees more. */
function sight(names: readonly string[], env: CommandOptions['env']): string {
  const sees = `it sees only ${listed(['PATH', 'HOME', 'LANG', ...names])} of the environment of the daemon`
  const unset = names.filter(name => !env[name])
  if (unset.length > 0) {
    const verb = unset.length > 1 ? 'are' : 'is'
    return `${sees}, where ${listed(unset)} ${verb} not set; export it where the daemon is started`
  }
  return `${sees}; list what else it needs: ${commandLine('settings', 'set', 'references.env', [...names, 'NAME'].join(','))}`
}
