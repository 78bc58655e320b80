// A mistake in a team's file: where it is, what was expected, and what to do. All mistakes of all files are reported at
// once.

import { CadreError, type Detail } from '../../error.ts'
import { line, lines, type Paint, type Printable } from '../../text/printable.ts'

export interface Problem {
  file: string
  /** From 1. */
  line: number
  /** From 1, in UTF-16 units. */
  column: number
  /** JSON pointer into the file. */
  path: string
  message: string
  /** The text of its line. */
  quote: string
  /** Nothing is known to be wrong: what the file names here could not be read. */
  isUnread?: true
}

/** The problem for the `details` of an error. Its message begins with `<file>:<line>:<column>: `. */
export function toDetail(problem: Problem): Detail {
  const { file, line, column, path, message } = problem
  return { path, message: `${file}:${line}:${column}: ${message}` }
}

/** The problems in file order, each once. */
export function inOrder(problems: readonly Problem[]): Problem[] {
  const seen = new Set<string>()
  return problems
    .toSorted((a, b) => compare(a.file, b.file) || a.line - b.line || a.column - b.column)
    .filter(({ file, line, column, message }) => {
      const key = `${file}:${line}:${column}:${message}`
      return !seen.has(key) && seen.add(key)
    })
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

const WIDTH = 120

/** Renders a problem for terminals: the message, the line, and a caret under the place. */
export function renderProblem({ file, line: at, column, message, quote }: Problem, paint: Paint): Printable[] {
  const from = column > WIDTH - 20 ? column - WIDTH / 2 : 0
  const gutter = `${at} | `
  // What is unseen in the file is wider when it is shown.
  const before = line`${quote.slice(from, column - 1)}`
  const [first, ...more] = lines(message)
  return [
    line`${paint.bold(`${file}:${at}:${column}:`)} ${first ?? ''}`,
    ...more,
    line`  ${paint.dim(gutter)}${before}${quote.slice(column - 1, from + WIDTH)}`,
    line`  ${' '.repeat(gutter.length + before.width)}${paint.red('^')}`,
  ]
}

/** The error that carries `problems`. Its details are the problems and, after them, `besides`. */
export function problemError(what: string, problems: readonly Problem[], besides: readonly Detail[] = []): CadreError {
  const ordered = inOrder(problems)
  const count = ordered.length === 1 ? '1 problem' : `${ordered.length} problems`
  const message = [`${what} has ${count}`, ...besides.map(detail => detail.message)].join('; ')
  return new CadreError('invalid_request', message, { details: [...ordered.map(toDetail), ...besides], cause: ordered })
}

/** The problems that an error carries, for rendering. */
export function problemsOf(error: unknown): readonly Problem[] {
  return error instanceof CadreError && Array.isArray(error.cause) ? (error.cause as Problem[]) : []
}
