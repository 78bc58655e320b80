// How states look: each has one symbol and one colour. Colour is used only for states; everything else is plain or dim.

import type { Paint, Printable } from '../../../text/printable.ts'

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 80

/** The symbol of the state of a run or phase. If `now` is given, the symbol of a running one turns. */
export function symbol(paint: Paint, state: string, now?: number): Printable {
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
export function stateWord(paint: Paint, state: string): Printable {
  const word = state.replaceAll('_', ' ')
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
