// What the commands that show something share: a table or JSON on stdout, pages, and durations.

import { formatDuration } from '../../../duration.ts'
import { isObject } from '../../../json.ts'
import { commandLine } from '../../../program/called-as.ts'
import { createPaint, line, type Paint, type Shown } from '../../../text/printable.ts'
import { print, printJson, printMessage } from '../../../text/terminal.ts'
import { unreadableIn } from '../../../wire/call.ts'
import { type RunTimes, tookMs } from '../../../wire/records/words.ts'
import { table } from '../terminal/table.ts'

export function show(json: boolean | undefined, data: unknown, rows: (paint: Paint) => Shown[][]): void {
  if (json) return printJson(data)
  const lines = table(rows(createPaint(process.stdout)))
  printUnreadable(data)
  if (lines.length === 0) printMessage(line`none`)
  print(lines)
}

/** Says which rows of what was asked for could not be read. The others are shown all the same. */
export function printUnreadable(data: unknown): void {
  if (!isObject(data)) return
  const paint = createPaint(process.stderr)
  printMessage(unreadableIn(data).map(({ id, problem }) => line`${paint.yellow('unreadable')}  ${id}: ${problem}`))
}

/** The command for the next page, if there is one. The caller's flags stay. */
export function printHowMany({ total, total_more, offset, shown }: Paged): void {
  const more = total - offset - shown
  if ((more <= 0 && !total_more) || shown === 0) return
  const next = [...withoutPage(process.argv.slice(2)), '--offset', String(offset + shown)]
  const many = total_more ? (more > 0 ? `over ${more} more` : 'there may be more') : `${more} more`
  printMessage(line`${many}: ${commandLine(...next)}`)
}

interface Paged {
  total: number
  /** The list is longer than what was counted. */
  total_more?: true | undefined
  offset: number
  shown: number
}

/** `commandLine` adds the home. */
function withoutPage(args: readonly string[]): string[] {
  const left = ['--offset', '--home']
  return args.filter((arg, at) => !left.includes(arg.split('=')[0]!) && !left.includes(args[at - 1] ?? ''))
}

/** The width of the terminal. No limit when the output is not a terminal. */
export function columns(): number {
  return process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY
}

export function took(of: RunTimes): string {
  const ms = tookMs(of)
  if (ms !== null) return formatDuration(ms)
  return of.started_at === null ? '' : '…'
}
