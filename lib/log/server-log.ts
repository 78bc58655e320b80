// What a server says. Where its log is JSON, each of its lines is one of the log, whoever says it: Bun, a library, an agent,
// or what ends the process. The line on stdout that says where it listens is the only other one.

import { CadreError, messageOf } from '../error.ts'
import { commanderOutput } from '../text/terminal.ts'
import { createLog, type Log, logConsole, logFromEnvironment } from './log.ts'

type Environment = Record<string, string | undefined>

/** The log of a server. From now on warnings and what is written to the console are lines of it. */
export function serverLog(env: Environment = process.env): Log {
  const log = logFromEnvironment(env)
  logConsole(log)
  // The first listener is that of Bun, which writes them to stderr.
  process.removeAllListeners('warning')
  process.on('warning', ({ name, message }) => log.warn('warning', { name, said: message }))
  return log
}

/** The log of a server whose log is JSON, at any time and whatever is wrong with its settings; otherwise null. */
export function jsonLog({ CADRE_LOG_FORMAT: format }: Environment = process.env): Log | null {
  if (format === 'human' || (format !== 'json' && process.stderr.isTTY)) return null
  return createLog({ format: 'json' })
}

/** Says in one line why the process ends. */
export function logEnd(log: Log, thrown: unknown): void {
  const error = messageOf(thrown)
  if (thrown instanceof CadreError && thrown.code !== 'internal') {
    const { code, details } = thrown
    return log.error('the process ends', { code, error, ...(details && { details }) })
  }
  log.error('a fault of this program ends the process', {
    error,
    ...(thrown instanceof Error && { stack: thrown.stack }),
  })
}

/** Where Commander writes what is wrong with the words of `serve`. */
export const outputIn = (log: Log) => ({
  ...commanderOutput,
  writeErr: (text: string) => log.error('the command is not valid', { error: text.trim() }),
})

const HELP = ['-h', '--help', '-V', '--version']

/** Whether these are the words of `serve`, which is meant where no command is named. */
export function isServe(args: readonly string[]): boolean {
  const [first = ''] = args
  const word = first === '--home' ? args[2] : first.startsWith('--home=') ? args[1] : args[0]
  return word === undefined || word === 'serve' || (word.startsWith('-') && !HELP.includes(word))
}
