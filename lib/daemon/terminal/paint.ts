// How states look: one symbol and one colour each. Colour is for state only; everything else is plain or dim.

import pc from 'picocolors'
import { oneLine } from '../../one-line.ts'

export type Paint = ReturnType<typeof pc.createColors>

const FRAMES = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏']
const FRAME_MS = 80

export function createPaint(stream: { isTTY?: boolean }): Paint {
  return pc.createColors(pc.isColorSupported && stream.isTTY === true)
}

/** The symbol of a run's or a phase's state. With `now` what runs turns. */
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

/** A name on a line of ours, on which it cannot begin another. */
export function inline(text: string): string {
  return printable(oneLine(text))
}

/** Nothing that a run says may steer the terminal that shows it. */
export function printable(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, '·').replaceAll('\t', '  ')
}
