// The long storm of triggers: bun tests/triggers/storm.ts [home | realm] [minutes] [schedules]. The seed is printed;
// CADRE_TEST_SEED repeats it. That of a realm needs TEST_POSTGRES_URL.

import { countOf } from '../support/count.ts'
import { killProcesses } from '../support/daemon.ts'
import { fakeClock } from '../support/fake-clock.ts'
import { removeFolders } from '../support/folder.ts'
import { freshPostgres } from '../support/hub.ts'
import { endLeft } from '../support/left.ts'
import { seedOf } from '../support/random.ts'
import { realmStorm } from '../support/realm-storm.ts'
import { triggerStorm } from '../support/trigger-storm.ts'

const STORMS = { home: triggerStorm, realm: stormOfRealm }

async function stormOfRealm(options: { seed: number; schedules: number; minutes: number; say(text: string): void }) {
  const [one, other] = [fakeClock(), fakeClock()]
  const server = process.env.TEST_POSTGRES_URL
  if (!one || !other || !server) throw new Error('this needs libfaketime, and TEST_POSTGRES_URL')
  await using database = await freshPostgres(server)
  return await realmStorm({ ...options, database: database.location, clocks: [one, other] })
}

const began = performance.now()
try {
  const [kind, ...given] = process.argv.slice(2)
  const isNamed = kind === 'home' || kind === 'realm'
  const [minutes, schedules] = isNamed ? given : [kind, ...given]
  const options = { minutes: countOf(minutes, 5), schedules: countOf(schedules, 200), say: console.log }
  const toll = await STORMS[isNamed ? kind : 'home']({ ...options, seed: seedOf('trigger-storm') })
  console.log(
    `each slot has one firing: ${JSON.stringify(toll)}, ${((performance.now() - began) / 1_000).toFixed(0)} s`,
  )
} finally {
  await killProcesses()
  await endLeft()
  removeFolders()
}
