// How states look: each has one symbol and one colour. Colour is used only for states; everything else is plain or dim.

import pc from 'picocolors'
import { oneLine } from '../../one-line.ts'

export type Paint = ReturnType<typeof pc.createColors>

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 80

export function createPaint(stream: { isTTY?: boolean }): Paint {
  return pc.createColors(pc.isColorSupported && stream.isTTY === true)
}

/** The symbol of the state of a run or phase. If `now` is given, the symbol of a running one turns. */
export function symbol(paint: Paint, state: string, now?: number): string {
  switch (state) {
    case 'completed':
      return paint.green('✓')
    case 'failed':
      return paint.red('✗')
    case 'running':
      return paint.cyan(now === undefined ? '●' : FRAMES[Math.floor(now / FRAME_MS) % FRAMES.length]!)
    case 'awaiting_input':
      return paint.yellow('?')
    case 'cancelled':
      return paint.magenta('■')
    case 'skipped':
      return paint.dim('–')
    default:
      return paint.dim('○')
  }
}

/** A state as a word, in its colour. */
export function stateWord(paint: Paint, state: string): string {
  const word = state.replace('_', ' ')
  switch (state) {
    case 'completed':
      return paint.green(word)
    case 'failed':
      return paint.red(word)
    case 'running':
      return paint.cyan(word)
    case 'awaiting_input':
      return paint.yellow(word)
    case 'cancelled':
      return paint.magenta(word)
    default:
      return paint.dim(word)
  }
}

/** A name for use within a line. Line breaks are removed, so that it cannot begin another line. */
export function inline(text: string): string {
  return printable(oneLine(text))
}

/** Removes control characters, so that nothing that a run prints can control the terminal. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '·').replaceAll('\t', '  ')
}
