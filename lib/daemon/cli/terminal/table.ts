// Columns for lists, aligned by visible width and two spaces apart. The last column is not padded.

import { joined, line, type Printable, pad, type Shown, trimmed } from '../../../text/printable.ts'

/** One line a row. */
export function table(rows: readonly (readonly Shown[])[]): Printable[] {
  const cells = rows.map(row => row.map(cell => line`${cell}`))
  const widths: number[] = []
  for (const row of cells) {
    for (const [column, cell] of row.entries()) widths[column] = Math.max(widths[column] ?? 0, cell.width)
  }
  return cells.map(row =>
    trimmed(
      joined(
        row.map((cell, column) => (column === row.length - 1 ? cell : pad(cell, widths[column]!))),
        '  ',
      ),
      'end',
    ),
  )
}

/** Local time: `14:03:21` of today, else `2026-05-02 14:03`; a dash for no time. */
export function clock(at: number | null, now = new Date()): string {
  if (at === null) return '–'
  const date = new Date(at)
  const time = date.toTimeString()
  if (date.toDateString() === now.toDateString()) return time.slice(0, 8)
  const two = (value: number) => String(value).padStart(2, '0')
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())} ${time.slice(0, 5)}`
}
