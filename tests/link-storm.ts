// The long storm between hubs and daemons: bun run link-storm [--runs 500] [--kills 100] [--seed N]. It needs
// `TEST_POSTGRES_URL`, a server where databases may be created.

import { parseArgs } from 'node:util'
import { killProcesses } from './support/daemon.ts'
import { removeFolders } from './support/folder.ts'
import { endLeft } from './support/left.ts'
import { linkStorm } from './support/link-storm/storm.ts'
import { seedOf } from './support/random.ts'

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '500' },
    kills: { type: 'string', default: '100' },
    seed: { type: 'string' },
  },
})
const server = process.env.TEST_POSTGRES_URL
if (!server) throw new Error('set TEST_POSTGRES_URL to a PostgreSQL server where databases may be created')

const started = performance.now()
const seconds = () => ((performance.now() - started) / 1_000).toFixed(0)
const limit = { runs: Number(values.runs), kills: Number(values.kills) }
const seed = values.seed === undefined ? seedOf('link-storm') : Number(values.seed)
try {
  const toll = await linkStorm(server, seed, limit, soFar => console.log(`${seconds()} s: ${JSON.stringify(soFar)}`))
  console.log(`seed ${seed}: every rule held after ${JSON.stringify(toll)}, ${seconds()} s`)
} finally {
  await killProcesses()
  await endLeft()
  removeFolders()
}
