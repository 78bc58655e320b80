// What the commands that show something share: a table or JSON on stdout, pages, and durations.

import { commandLine } from '../../called-as.ts'
import { formatDuration } from '../../duration.ts'
import { createPaint, type Paint } from '../terminal/paint.ts'
import { table } from '../terminal/table.ts'

export function show(json: boolean | undefined, data: unknown, rows: (paint: Paint) => string[][]): void {
  if (json) return showJson(data)
  const lines = table(rows(createPaint(process.stdout)))
  if (lines.length === 0) process.stderr.write('none\n')
  for (const line of lines) process.stdout.write(`${line}\n`)
}

export function showJson(data: unknown): void {
  process.stdout.write(`${JSON.stringify(data, null, 2)}\n`)
}

/** The command for the next page, if there is one. The caller's flags stay. */
export function tellMore({ total, offset, shown }: { total: number; offset: number; shown: number }): void {
  const more = total - offset - shown
  if (more <= 0 || shown === 0) return
  const next = [...withoutPage(process.argv.slice(2)), '--offset', String(offset + shown)]
  process.stderr.write(`${more} more: ${commandLine(...next)}\n`)
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

export function took(started: number | null, completed: number | null): string {
  if (started === null) return ''
  return completed === null ? '…' : formatDuration(completed - started)
}
