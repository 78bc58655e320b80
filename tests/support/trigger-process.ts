// A daemon of which three schedules are due, as a process that tests kill. It starts or continues, looks three times, a
// minute later each time, and exits when the runs have ended.
//
//   bun tests/support/trigger-process.ts HOME

import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Daemon } from '../../lib/daemon/runs/daemon.ts'
import { tick } from '../../lib/daemon/triggers/tick.ts'
import { Triggers } from '../../lib/daemon/triggers/triggers.ts'
import { createLog } from '../../lib/log/log.ts'
import { until } from './bounded.ts'

/** In the past, because runs begin by the clock of the machine. */
const FIRST_LOOK = Date.parse('2026-01-05T00:00:30Z')
const MINUTE = 60_000
const LOOKS = 3

const TEAM = `name: "@local/killed"
version: 1.0.0
phases:
  - { name: ask, type: gate, when: "false", review: { prompt: "Go on?" } }
`

async function main(home: string): Promise<void> {
  const log = createLog({ level: 'error' })
  const daemon = await Daemon.open({ home, log, env: process.env })
  await daemon.openRuns.recover()
  const clock = { now: FIRST_LOOK }
  const triggers = new Triggers(daemon, () => clock.now)
  const team = join(home, 'team')
  if (!existsSync(join(team, 'team.yml'))) {
    mkdirSync(team, { recursive: true })
    writeFileSync(join(team, 'team.yml'), TEAM)
  }
  const spec = { kind: 'schedule', team, cron: '* * * * *', tz: 'UTC' } as const
  const all = [
    { ...spec, name: 'queue', overlap: 'queue' },
    { ...spec, name: 'catches-up', overlap: 'allow', catch_up: 'all', max: 2 },
    { ...spec, name: 'skips', overlap: 'skip' },
  ] as const
  for (const each of all) {
    const isKnown = triggers.list({ limit: 10, offset: 0 }).triggers.some(({ name }) => name === each.name)
    if (!isKnown) await triggers.add(each, 'local:ada')
  }
  for (let look = 1; look <= LOOKS; look++) {
    clock.now = FIRST_LOOK + look * (look + 1) * MINUTE
    await tick(daemon, triggers)
    const hasEnded = () => daemon.engine.load.runs === 0
    await until(hasEnded, 'the runs have ended')
    await tick(daemon, triggers)
    await until(hasEnded, 'the runs have ended')
  }
  await daemon.close()
}

if (import.meta.main) await main(process.argv[2]!)
