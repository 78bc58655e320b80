// What agents started under a daemon or an engine that was killed lives on until the next start on its home ends it. Where
// a test has no next start, this ends it in the same way.

import { endLeftGroups } from '../../lib/agent/processes.ts'
import { processesFolder } from '../../lib/daemon/home.ts'
import { createLog } from '../../lib/log.ts'

const homes = new Set<string>()
const log = createLog({ level: 'error' })

/** Has `endLeft` look at this home too. */
export function watchHome(home: string): void {
  homes.add(home)
}

/** Ends what the last process on this home left running. */
export function endLeftIn(home: string): Promise<void> {
  return endLeftGroups(processesFolder(home), log)
}

/** Called when all tests of a process have ended (preload.ts). */
export async function endLeft(): Promise<void> {
  await Promise.all(Array.from(homes, endLeftIn))
}
