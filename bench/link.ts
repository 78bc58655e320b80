// Measures hub and daemons together, on SQLite and, with TEST_POSTGRES_URL, on PostgreSQL. Each measurement has a floor in
// the same run: the commits, requests or rows that it needs at least, without a hub around them. The ratios matter,
// because the machine affects both sides. Memory and processor time are read from /proc, so this runs on Linux only.
//
//   bun bench/link.ts [--only begin,claims,runs,polls,beats,backlog] [--database sqlite,postgres] [--daemons 10000]
//                     [--seconds 15] [--lines 1000000]        a backlog is measured only when its lines are given

import { parseArgs } from 'node:util'
import { backlog } from './link-backlog.ts'
import { beats, polls } from './link-crowd.ts'
import { begin, claims, runs } from './link-runs.ts'
import { type Dialect, openWorld, type World } from './link-world.ts'

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    database: { type: 'string', default: 'sqlite,postgres' },
    lines: { type: 'string' },
    daemons: { type: 'string', default: '10000' },
    seconds: { type: 'string', default: '15' },
  },
})
const only = values.only?.split(',')
const [daemons, seconds, lines] = [Number(values.daemons), Number(values.seconds), Number(values.lines)]

const programs: Record<string, (world: World) => Promise<void>> = {
  begin,
  claims,
  runs,
  polls: world => polls(world, daemons),
  beats: world => beats(world, daemons, seconds),
  ...(values.lines !== undefined && { backlog: world => backlog(world, lines) }),
}

for (const dialect of values.database.split(',') as Dialect[]) {
  if (dialect === 'postgres' && !process.env.TEST_POSTGRES_URL) {
    console.log('PostgreSQL is not measured: TEST_POSTGRES_URL is not set')
    continue
  }
  for (const [name, program] of Object.entries(programs)) {
    if (only && !only.includes(name)) continue
    await using world = await openWorld(dialect)
    console.log(`${dialect}: ${name}`)
    await program(world)
  }
}
