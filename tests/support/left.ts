// Ends processes that agents started under a daemon or an engine that was killed, and daemons in this process that a
// failed test left. The next start on the same home would end such processes; this does the same for tests without a next
// start.

import { endLeftGroups } from '../../lib/agent/commands/processes.ts'
import { processesFolder } from '../../lib/daemon/home/home.ts'
import { createLog } from '../../lib/log/log.ts'

const homes = new Set<string>()
const log = createLog({ level: 'error' })

/** Adds a home to those that `endLeft` checks. */
export function watchHome(home: string): void {
  homes.add(home)
}

/** Ends the processes that the last process on this home left running. */
export function endLeftIn(home: string): Promise<void> {
  return endLeftGroups(processesFolder(home), log)
}

const served = new Set<() => Promise<unknown>>()

/** Calls `close` at the end, unless the function that this returns was called before. */
export function closeAtEnd(close: () => Promise<unknown>): () => void {
  served.add(close)
  return () => void served.delete(close)
}

/** Called when all tests of a process have ended (preload.ts). */
export async function endLeft(): Promise<void> {
  await Promise.all(Array.from(served, close => close()))
  await Promise.all(Array.from(homes, endLeftIn))
}
