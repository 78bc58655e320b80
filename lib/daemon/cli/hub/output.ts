// How the commands about a hub print: one page of a list, or one record, as text or as JSON; times relative; and the
// question before something is lost.

import { formatDuration } from '../../../duration.ts'
import { CadreError } from '../../../error.ts'
import {
  createPaint,
  joined,
  line,
  nothing,
  type Paint,
  type Printable,
  type Shown,
  trimmed,
  wrap,
} from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { askChoice, isAtTerminal } from '../kit/form.ts'
import type { HubOptions } from '../kit/hub-client.ts'
import { columns, printHowMany, printUnreadable } from '../kit/print.ts'
import { table } from '../terminal/table.ts'

export interface Options extends HubOptions {
  json?: boolean
}

export interface PageOptions extends Options {
  limit?: number
  offset?: number
}

const PAGE = 20

export function pageOf({ limit = PAGE, offset = 0 }: PageOptions): { limit: number; offset: number } {
  return { limit, offset }
}

/** Prints a page of a list. The items are those of `found`, which is printed whole as JSON. */
export function list<T>(
  options: PageOptions,
  found: { total: number },
  items: readonly T[],
  row: (item: T, paint: Paint) => Shown[],
): void {
  if (options.json) return printJson(found)
  const paint = createPaint(process.stdout)
  print(fitted(items.map(item => row(item, paint))))
  printUnreadable(found)
  if (items.length === 0) printMessage(line`none`)
  printHowMany({ total: found.total, offset: options.offset ?? 0, shown: items.length })
}

/** A part of what is shown of one record: its facts by name, or a list below its title. */
export type Section = [title: string, rows: readonly (readonly Shown[])[]]

/** The facts of a record by name. */
export type Facts = readonly (readonly [name: string, value: Shown])[]

/** Prints a record: a title, its facts, and then its sections. Empty facts and sections are left out. */
export function record(
  options: Options,
  data: unknown,
  title: string,
  facts: Facts,
  sections: (paint: Paint) => Section[],
): void {
  if (options.json) return printJson(data)
  const paint = createPaint(process.stdout)
  print(paint.bold(title))
  print(fitted(facts.filter(([, value]) => value !== '').map(([name, value]) => [`  ${name}`, value])))
  for (const [name, rows] of sections(paint)) {
    if (rows.length === 0) continue
    print(nothing, paint.bold(name))
    print(fitted(rows.map(([first = '', ...rest]) => [`  ${first}`, ...rest])))
  }
}

/** Says on stderr what was done, or prints the hub's reply as JSON. */
export function done({ json }: Options, data: unknown, ...messages: readonly string[]): void {
  if (json) return printJson(data)
  printMessage(messages.map(each => line`${each}`))
}

/** Prints a secret on stdout, which the hub never shows again, and says on stderr what it is. */
export function secret({ json }: Options, made: { token: string }, what: string, ...more: readonly string[]): void {
  if (json) return printJson(made)
  print(line`${made.token}`)
  printMessage(line`this is shown once: ${what}`, ...more.map(each => line`${each}`))
}

/** A table. Where the terminal is too narrow for it, each row is a line with the rest of its cells below. */
function fitted(rows: readonly (readonly Shown[])[]): Printable[] {
  const room = columns()
  const whole = table(rows)
  if (whole.every(({ width }) => width <= room)) return whole
  return rows.flatMap(row => {
    const [first = nothing, ...rest] = row.map(cell => line`${cell}`)
    const indent = ' '.repeat(first.width - trimmed(first, 'start').width + 2)
    return [...wrapped(first, room), ...packed(rest, room - indent.length).map(each => line`${indent}${each}`)]
  })
}

/** As many cells in a line as it has room for. Only a cell that is longer than a line is broken. */
function packed(cells: readonly Printable[], room: number): Printable[] {
  const lines: Printable[] = []
  for (const cell of cells.filter(({ isEmpty }) => !isEmpty)) {
    const last = lines.at(-1)
    const longer = last && joined([last, cell], '  ')
    if (longer && longer.width <= room) lines[lines.length - 1] = longer
    else lines.push(...wrapped(cell, room).map(each => trimmed(each, 'start')))
  }
  return lines
}

const wrapped = (cell: Printable, room: number) => wrap(cell, Math.max(16, room), { trim: false })

/** `3m 20s ago`, `in 2d 4h`; a dash for no time. */
export function relative(at: number | string | null, now = Date.now()): string {
  if (at === null) return '–'
  const ms = new Date(at).getTime() - now
  return ms > 0 ? `in ${formatDuration(ms)}` : `${formatDuration(-ms)} ago`
}

/** Asks before something is lost. Where nobody can be asked, `--yes` is needed. */
export async function confirmed(question: string, { yes }: { yes?: boolean }): Promise<void> {
  if (yes) return
  if (!isAtTerminal()) throw new CadreError('invalid_request', `${question} Add --yes to say so.`)
  if ((await askChoice(question, ['yes', 'no'])) === 'yes') return
  throw new CadreError('invalid_request', 'nothing was changed')
}
