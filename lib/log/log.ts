// The log: one line per event on stderr, readable on a terminal and as JSON otherwise. Writing never throws. Callers
// pass the name of the event and its fields; neither may contain secrets.

import { AsyncLocalStorage } from 'node:async_hooks'
import { CadreError } from '../error.ts'
import { seen, seenJson } from '../text/unseen.ts'
import { faultFields } from './fault-fields.ts'

const LEVELS = ['debug', 'info', 'warn', 'error'] as const
export type Level = (typeof LEVELS)[number]

export type Fields = Record<string, unknown>

export interface Log {
  debug(event: string, fields?: Fields): void
  info(event: string, fields?: Fields): void
  warn(event: string, fields?: Fields): void
  error(event: string, fields?: Fields): void
}

/** One line, before it has a format. */
export interface Line {
  /** Epoch milliseconds. */
  at: number
  level: Level
  event: string
  /** With those of the work under way. */
  fields: Fields
}

/** The log of a process, whose lines also go elsewhere. */
export interface ProcessLog extends Log {
  /** Calls `listener`, which must not throw, with every further line. */
  follow(listener: (line: Line) => void): void
}

export interface LogOptions {
  level?: Level
  format?: 'human' | 'json'
  write?: (line: string) => void
  now?: () => number
}

/** Creates a log that writes events of `level` (default info) and above. */
export function createLog(options: LogOptions = {}): ProcessLog {
  const { level = 'info', format = process.stderr.isTTY ? 'human' : 'json', now = Date.now } = options
  const from = LEVELS.indexOf(level)
  const text = format === 'human' ? humanLine : jsonLine
  const lostLine = (lines: number) =>
    text({ at: now(), level: 'warn', event: 'the log could not be written', fields: { lines } })
  const write = options.write ?? toStderr(lostLine)
  const listeners: ((line: Line) => void)[] = []
  const at = (level: Level) =>
    LEVELS.indexOf(level) < from
      ? () => {}
      : (event: string, fields: Fields = {}) => {
          const line = { at: now(), level, event, fields: { ...scopeFields(), ...fields } }
          write(text(line))
          for (const listener of listeners) listener(line)
        }
  const follow = (listener: (line: Line) => void) => void listeners.push(listener)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error'), follow }
}

/**
 * From now on the texts that Bun and libraries write to the console are warnings of the log, not text between its lines.
 * Returns a function that undoes this.
 */
export function logConsole(log: Log): () => void {
  const { warn, error } = console
  console.warn = console.error = (...said) => log.warn('console', { said: said.map(String).join(' ') })
  return () => void Object.assign(console, { warn, error })
}

/** From now on an error that no code has handled is a line of the log before it ends the process, with exit code 1. */
export function logFaults(log: Log): void {
  for (const event of ['uncaughtException', 'unhandledRejection'] as const) {
    // Those of a command would print it for people.
    process.removeAllListeners(event)
    process.on(event, (thrown: unknown) => {
      log.error('a fault of this program ends it', faultFields(thrown))
      process.exit(1)
    })
  }
}

const scopes = new AsyncLocalStorage<{ fields: Fields }>()

/** The fields of the work under way, see `logged`. */
export const scopeFields = (): Fields => scopes.getStore()?.fields ?? {}

/**
 * Does `work`. The lines that are logged meanwhile because of it have these fields, too. What the work leaves behind,
 * such as a run that it started, logs without them once it is over.
 */
export async function logged<T>(fields: Fields, work: () => T | Promise<T>): Promise<T> {
  const scope = { fields }
  try {
    return await scopes.run(scope, work)
  } finally {
    scope.fields = {}
  }
}

/** Creates the log that `CADRE_LOG_LEVEL` and `CADRE_LOG_FORMAT` configure. */
export function logFromEnvironment(env: Record<string, string | undefined> = process.env): ProcessLog {
  const level = oneOf('CADRE_LOG_LEVEL', env.CADRE_LOG_LEVEL, LEVELS)
  const format = oneOf('CADRE_LOG_FORMAT', env.CADRE_LOG_FORMAT, ['human', 'json'] as const)
  return createLog({ ...(level && { level }), ...(format && { format }) })
}

function oneOf<T extends string>(name: string, value: string | undefined, allowed: readonly T[]): T | undefined {
  if (value === undefined || value === '') return undefined
  const known = allowed.find(each => each === value)
  if (!known) throw new CadreError('invalid_request', `${name} must be one of ${allowed.join(', ')}, not ${value}`)
  return known
}

function jsonLine({ at, level, event, fields }: Line): string {
  return seenJson(JSON.stringify({ time: new Date(at).toISOString(), level, event, ...fields }))
}

function humanLine({ at, level, event, fields }: Line): string {
  const pairs = Object.entries(fields).map(([key, value]) => ` ${key}=${plain(value)}`)
  return seen(`${new Date(at).toTimeString().slice(0, 8)} ${level.padEnd(5)} ${event}${pairs.join('')}`)
}

/** A value for the readable format. Values with spaces, line breaks or characters that nobody sees are quoted. */
function plain(value: unknown): string {
  if (typeof value === 'string' && /^[^\s"=]+$/u.test(value) && seen(value) === value) return value
  return seenJson(JSON.stringify(value) ?? String(value))
}

/**
 * Writes lines to stderr. A full disk or a closed pipe behind it must not stop the program: lines are lost then, and how many
 * is said in a line of its own once a later one is written.
 */
function toStderr(lostLine: (lines: number) => string): (line: string) => void {
  let lost = 0
  const put = (line: string, lines: number) => {
    try {
      hearErrors()
      process.stderr.write(`${line}\n`, error => {
        if (error) lost += lines
        else if (lost > 0) sayLost()
      })
    } catch {
      lost += lines
    }
  }
  const sayLost = () => {
    const lines = lost
    lost = 0
    put(lostLine(lines), lines)
  }
  return line => put(line, 1)
}

let isHeard = false

/** An error that nobody hears ends the program. */
function hearErrors(): void {
  if (!isHeard) process.stderr.on('error', () => {})
  isHeard = true
}
