// The download of a log: what was written, with times and the phases that wrote it.

import { save } from '../../kit/save.ts'
import { type Paths, pathOf } from './line.tsx'
import type { LoggedLine } from './lines.ts'

/** Lines that one piece has. */
const PIECE = 2_000

let lastTime = { at: 0, iso: '' }

/** Many lines are of the same millisecond. */
function isoOf(at: number): string {
  if (at !== lastTime.at) lastTime = { at, iso: new Date(at).toISOString() }
  return lastTime.iso
}

/** Saves the shown lines as a file, in pieces, so that a large log does not block the page. */
export async function download(
  runId: string,
  count: number,
  lineAt: (index: number) => LoggedLine | undefined,
  paths: Paths | null,
) {
  const parts: Blob[] = []
  for (let from = 0; from < count; from += PIECE) {
    const texts: string[] = []
    for (let index = from; index < Math.min(count, from + PIECE); index++) {
      const line = lineAt(index)
      if (line) texts.push(`${isoOf(line.at)} ${pathOf(line, paths) || '-'} ${line.text}\n`)
    }
    // The browser keeps what is in a blob outside of the memory of the page.
    parts.push(new Blob(texts))
    await new Promise(resolve => setTimeout(resolve))
  }
  save(new Blob(parts, { type: 'text/plain' }), `${runId}.log`)
}
