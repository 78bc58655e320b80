// How a command reports a failure: on stderr, with the quoted line for mistakes in team.yml.

import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { damageOf } from '../../../db/open.ts'
import { CadreError, type Detail, messageOf } from '../../error.ts'
import { pathError } from '../../files/path-error.ts'
import { renderProblem } from '../../team/team.ts'
import { createPaint, line, lines, nothing, type Paint, type Printable, paragraph } from '../../text/printable.ts'
import { printMessage } from '../../text/terminal.ts'
import { fullDisk } from '../home/full-disk.ts'
import { databaseFile, homeFolder } from '../home/home.ts'
import { EXIT } from './kit/exit.ts'

const PLACE = /^(.+?):(\d+):(\d+): ([\s\S]*)$/

export interface FailedCommand {
  home: string | undefined
  /** The team that the command was given, if any. */
  path: string | undefined
}

/** Prints what was thrown, each thing once, and returns the exit code. */
export function printFailure(thrown: unknown, { home, path }: FailedCommand): number {
  const paint = createPaint(process.stderr)
  const error = homeErrorOf(thrown, home) ?? pathError(thrown) ?? thrown
  if (!(error instanceof CadreError) || error.code === 'internal') {
    const isDebug = process.env.CADRE_LOG_LEVEL === 'debug'
    const hint = isDebug ? '' : ' (a fault of this program; set CADRE_LOG_LEVEL=debug to print the stack)'
    printMessage(line`${paint.red('error')}  ${messageOf(error).split('\n', 1)[0]!}${hint}`)
    if (isDebug && error instanceof Error) printMessage(lines(error.stack ?? ''))
    return EXIT.failed
  }
  const details = error.details ?? []
  const places = details.map(({ message }) => placed(message, path, paint))
  for (const text of places) if (text !== null) printMessage(text, nothing)
  const rest = details.filter((_, index) => places[index] === null)
  const [first = nothing, ...more] = paragraph(withoutList(error.message, details))
  printMessage(line`${paint.red('error')}  ${first}`, more)
  for (const detail of rest) {
    const [first = nothing, ...more] = paragraph(detail.message)
    if (error.besides.includes(detail)) printMessage(line`  ${detail.path}  ${first}`, more)
    else if (details.length > 1) printMessage(line`  ${first}`, more)
  }
  return error.code === 'unavailable' ? EXIT.failed : EXIT.usage
}

/** The error to report if the disk of the home is full or its database is damaged, and null otherwise. */
function homeErrorOf(thrown: unknown, given: string | undefined): CadreError | null {
  try {
    const home = homeFolder(given)
    return fullDisk(thrown, home) ?? damageOf(thrown, databaseFile(home))
  } catch {
    return null
  }
}

/** Removes the details from the end of a message, because each gets a line of its own. */
function withoutList(message: string, details: readonly Detail[]): string {
  const list = details.map(detail => detail.message).join('; ')
  if (details.length < 2 || !message.endsWith(list)) return message
  return message.slice(0, -list.length).trimEnd() || 'the request is not valid:'
}

/** A detail that names a place, with the line of the file. */
function placed(detail: string, path: string | undefined, paint: Paint): readonly Printable[] | null {
  const [, file, line, column, message] = PLACE.exec(detail) ?? []
  if (!file || !message) return null
  const text = lineOf(file, Number(line), path)
  if (text === null || !process.stderr.isTTY) return lines(detail)
  return renderProblem({ file, line: Number(line), column: Number(column), path: '', message, quote: text }, paint)
}

function lineOf(file: string, line: number, path: string | undefined): string | null {
  if (path === undefined || !existsSync(path)) return null
  const folder = statSync(path).isDirectory() ? path : dirname(path)
  const found = resolve(folder, file)
  return existsSync(found) ? (readFileSync(found, 'utf8').split('\n')[line - 1] ?? null) : null
}
