// How a command tells that it could not do what it was asked: on stderr, with the quoted line for mistakes in team.yml.

import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { CadreError, type Detail } from '../../error.ts'
import { renderProblem } from '../../team/team.ts'
import { createPaint, printable } from '../terminal/paint.ts'
import { EXIT } from './watch.ts'

const PLACE = /^(.+?):(\d+):(\d+): ([\s\S]*)$/

/** Prints what was thrown and returns the exit code. `path` is the team that the command was given, if any. */
export function tellFailure(thrown: unknown, path?: string): number {
  const paint = createPaint(process.stderr)
  const say = (text: string) => process.stderr.write(`${text}\n`)
  if (!(thrown instanceof CadreError) || thrown.code === 'internal') {
    say(thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown))
    return EXIT.failed
  }
  const details = thrown.details ?? []
  const places = details.map(({ message }) => placed(message, path, paint.isColorSupported))
  for (const text of places) if (text !== null) say(`${text}\n`)
  const rest = details.filter((_, index) => places[index] === null)
  say(`${paint.red('error')}  ${printable(withoutList(thrown.message, rest))}`)
  for (const { path: at, message } of rest) {
    if (thrown.message === message) continue
    say(thrown.message.includes(message) ? `  ${printable(message)}` : `  ${at}  ${printable(message)}`)
  }
  return thrown.code === 'unavailable' ? EXIT.failed : EXIT.usage
}

/** A message that ends with all of its details, without them: each gets a line of its own. */
function withoutList(message: string, details: readonly Detail[]): string {
  const list = details.map(detail => detail.message).join('; ')
  return details.length > 1 && message.endsWith(list) ? message.slice(0, -list.length).trimEnd() : message
}

/** A detail that names a place, with the line as it stands in the file. */
function placed(detail: string, path: string | undefined, color: boolean): string | null {
  const [, file, line, column, message] = PLACE.exec(detail) ?? []
  if (!file || !message) return null
  const text = lineOf(file, Number(line), path)
  if (text === null || !process.stderr.isTTY) return detail
  return renderProblem({ file, line: Number(line), column: Number(column), path: '', message, quote: text }, color)
}

function lineOf(file: string, line: number, path: string | undefined): string | null {
  if (path === undefined || !existsSync(path)) return null
  const folder = statSync(path).isDirectory() ? path : dirname(path)
  const found = resolve(folder, file)
  return existsSync(found) ? (readFileSync(found, 'utf8').split('\n')[line - 1] ?? null) : null
}
