// A daemon that watches a folder and claims its files, as a process that tests kill. It starts or continues, looks until
// no file is left in the folder, and exits when the runs have ended.
//
//   bun tests/support/watch-process.ts HOME FOLDER

import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Daemon } from '../../lib/daemon/runs/daemon.ts'
import { tick } from '../../lib/daemon/triggers/tick.ts'
import { Triggers } from '../../lib/daemon/triggers/triggers.ts'
import { Watches } from '../../lib/daemon/triggers/watches.ts'
import { createLog } from '../../lib/log/log.ts'
import { until } from './bounded.ts'

const TEAM = `name: "@local/killed"
version: 1.0.0
phases:
  - { name: ask, type: gate, when: "false", review: { prompt: "Go on?" } }
`

async function main(home: string, at: string): Promise<void> {
  const daemon = await Daemon.open({ home, log: createLog({ level: 'error' }), env: process.env })
  await daemon.openRuns.recover()
  const triggers = new Triggers(daemon)
  const watches = new Watches(daemon, triggers)
  const team = join(home, 'team')
  if (!existsSync(join(team, 'team.yml'))) {
    mkdirSync(team, { recursive: true })
    writeFileSync(join(team, 'team.yml'), TEAM)
  }
  const spec = { kind: 'watch', team, folder: at, settle: '20ms', poll: '100ms', initial: true, claim: true } as const
  const all: Parameters<Triggers['add']>[0][] = [
    { ...spec, name: 'one', match: ['[ab]'] },
    { ...spec, name: 'together', match: ['[cde]'], batch: '1ms' },
  ]
  for (const each of all) {
    const isKnown = triggers.list({ limit: 10, offset: 0 }).triggers.some(({ name }) => name === each.name)
    if (!isKnown) await triggers.add(each, 'local:ada')
  }
  await until(async () => {
    await tick(daemon, triggers)
    await watches.look()
    const isLeft = readdirSync(at).some(name => !name.startsWith('.'))
    const waits = triggers.tables.firings.triggersThatWait().length > 0
    return !isLeft && !waits && daemon.engine.load.runs === 0
  }, 'all files are claimed, and the runs have ended')
  await daemon.close()
}

if (import.meta.main) await main(process.argv[2]!, process.argv[3]!)
