// The long storm of triggers: bun tests/triggers/storm.ts [minutes] [schedules]. The seed is printed; CADRE_TEST_SEED
// repeats it.

import { countOf } from '../support/count.ts'
import { killProcesses } from '../support/daemon.ts'
import { removeFolders } from '../support/folder.ts'
import { endLeft } from '../support/left.ts'
import { seedOf } from '../support/random.ts'
import { triggerStorm } from '../support/trigger-storm.ts'

const began = performance.now()
try {
  const minutes = countOf(process.argv[2], 5)
  const schedules = countOf(process.argv[3], 200)
  const toll = await triggerStorm({ seed: seedOf('trigger-storm'), schedules, minutes, say: console.log })
  console.log(
    `each slot has one firing: ${JSON.stringify(toll)}, ${((performance.now() - began) / 1_000).toFixed(0)} s`,
  )
} finally {
  await killProcesses()
  await endLeft()
  removeFolders()
}
