// What the commands that show something share: a table or JSON on stdout, and durations.

import { formatDuration } from '../../duration.ts'
import { createPaint, type Paint } from '../terminal/paint.ts'
import { table } from '../terminal/table.ts'

export function show(json: boolean | undefined, data: unknown, rows: (paint: Paint) => string[][]): void {
  if (json) return void process.stdout.write(`${JSON.stringify(data, null, 2)}\n`)
  const lines = table(rows(createPaint(process.stdout)))
  if (lines.length === 0) process.stderr.write('none\n')
  for (const line of lines) process.stdout.write(`${line}\n`)
}

/** The width of the terminal. No limit when the output is not a terminal. */
export function columns(): number {
  return process.stdout.isTTY ? process.stdout.columns : Number.POSITIVE_INFINITY
}

export function took(started: number | null, completed: number | null): string {
  if (started === null) return ''
  return completed === null ? '…' : formatDuration(completed - started)
}
