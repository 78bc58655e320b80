// Long work on the event loop that lets other work have its turn.

import { setImmediate as nextTurn } from 'node:timers/promises'

/** How long work may occupy the event loop before other calls get their turn. */
const TURN_MS = 10

/** Returns a function to be awaited between the steps of long work. It ends the turn when the turn is over its time. */
export function takeTurns(): () => Promise<void> | undefined {
  let began = performance.now()
  return () => {
    if (performance.now() - began <= TURN_MS) return
    return nextTurn().then(() => {
      began = performance.now()
    })
  }
}
