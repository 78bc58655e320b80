// Ends processes that agents started under a daemon or an engine that was killed. The next start on the same home would
// end them; this does the same for tests without a next start.

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

/** Called when all tests of a process have ended (preload.ts). */
export async function endLeft(): Promise<void> {
  await Promise.all(Array.from(homes, endLeftIn))
}
