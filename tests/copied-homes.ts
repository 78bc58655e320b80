// The long run of copied homes: bun run copied-homes [rounds]. The seed is printed; CADRE_TEST_SEED repeats it.

import { copiedHomes } from './support/copied-homes.ts'
import { countOf } from './support/count.ts'
import { killProcesses } from './support/daemon.ts'
import { removeFolders } from './support/folder.ts'
import { endLeft } from './support/left.ts'
import { seedOf } from './support/random.ts'

const started = performance.now()
const seconds = () => `${((performance.now() - started) / 1_000).toFixed(0)} s`
try {
  const rounds = countOf(process.argv[2], 100)
  const toll = await copiedHomes(seedOf('copied-homes'), rounds, soFar => {
    console.log(`${seconds()}: ${JSON.stringify(soFar)}`)
  })
  console.log(`nothing was written twice: ${JSON.stringify(toll)}, ${seconds()}`)
} finally {
  await killProcesses()
  await endLeft()
  removeFolders()
}
