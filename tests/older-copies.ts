// Puts hubs back on older copies of their databases at random moments and in every way:
// bun run older-copies [--rounds 200] [--seed N] [--ways 'restore,pg_restore']. Copies of PostgreSQL need
// `TEST_POSTGRES_URL`, and standbys need the programs of PostgreSQL.

import { parseArgs } from 'node:util'
import { countOf } from './support/count.ts'
import { killProcesses } from './support/daemon.ts'
import { removeFolders } from './support/folder.ts'
import { endLeft } from './support/left.ts'
import { olderCopies, WAYS } from './support/older-copies.ts'
import { seedOf } from './support/random.ts'
import { BIN } from './support/standby.ts'

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '20' },
    seed: { type: 'string' },
    ways: { type: 'string', default: WAYS.join() },
  },
})
const server = process.env.TEST_POSTGRES_URL
const wanted = values.ways.split(',')
const ways = WAYS.filter(way => wanted.includes(way))
  .filter(way => !way.startsWith('pg_restore') || server !== undefined)
  .filter(way => !way.startsWith('standby') || BIN !== null)
const seed = values.seed === undefined ? seedOf('older-copies') : Number(values.seed)
console.log(`ways: ${ways.join(', ')}`)
try {
  const say = (line: string) => console.log(line)
  const toll = await olderCopies({ rounds: countOf(values.rounds, 20), seed, ways, server: server ?? '', say })
  console.log(`seed ${seed}: every rule held after ${JSON.stringify(toll)}`)
} finally {
  await killProcesses()
  await endLeft()
  removeFolders()
}
