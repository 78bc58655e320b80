// A daemon with one hook, as a process that tests kill: it starts or continues, and sends itself three deliveries twice.
//
//   bun tests/support/hook-process.ts HOME

import { createHmac } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Elysia } from 'elysia'
import { hooks } from '../../lib/daemon/routes/hooks.ts'
import { Daemon } from '../../lib/daemon/runs/daemon.ts'
import { tick } from '../../lib/daemon/triggers/tick.ts'
import { Triggers } from '../../lib/daemon/triggers/triggers.ts'
import { listen } from '../../lib/http/listen.ts'
import { root, STRICT } from '../../lib/http/root.ts'
import { createLog } from '../../lib/log/log.ts'
import { until } from './bounded.ts'

const SECRET = 'the secret of this hook'
const TEAM = `name: "@local/killed"
version: 1.0.0
phases:
  - { name: ask, type: gate, when: "false", review: { prompt: "Go on?" } }
`

async function main(home: string): Promise<void> {
  const log = createLog({ level: 'error' })
  const daemon = await Daemon.open({ home, log, env: process.env })
  await daemon.openRuns.recover()
  const triggers = new Triggers(daemon)
  const team = join(home, 'team')
  if (!existsSync(join(team, 'team.yml'))) {
    mkdirSync(team, { recursive: true })
    writeFileSync(join(team, 'team.yml'), TEAM)
  }
  const server = listen(new Elysia(STRICT).use(root(log)).use(hooks(daemon, [])), { host: '127.0.0.1', port: 0 })
  daemon.address = server.url
  const [known] = triggers.list({ limit: 1, offset: 0 }).triggers
  const fields = { name: 'killed', kind: 'hook', team, scheme: 'github', secret: SECRET, overlap: 'queue' } as const
  const { url } = known ?? (await triggers.add({ ...fields, queue_max: 10 }, 'local:ada'))

  /** As a sender does: until it is taken. */
  async function send(id: string): Promise<string | null> {
    const body = JSON.stringify({ id })
    const signature = createHmac('sha256', SECRET).update(body).digest('hex')
    const headers = { 'x-github-delivery': id, 'x-hub-signature-256': `sha256=${signature}` }
    const reply = await fetch(url!, { method: 'POST', body, headers })
    if (reply.status !== 202) throw new Error(`${id} was answered with ${reply.status}: ${await reply.text()}`)
    return ((await reply.json()) as { data: { run_id: string | null } }).data.run_id
  }

  const ids = ['d-1', 'd-2', 'd-3']
  await Promise.all(ids.map(send))
  const hasEnded = () => daemon.engine.load.runs === 0
  const waits = () => triggers.tables.firings.triggersThatWait().length > 0
  do {
    await until(hasEnded, 'the runs have ended')
    await tick(daemon, triggers)
  } while (waits())
  await until(hasEnded, 'the runs have ended')
  const answered = await Promise.all(ids.map(send))
  if (new Set(answered).size !== ids.length || answered.includes(null)) {
    throw new Error(`the repetitions were answered with ${answered}`)
  }
  await server.stop()
  await daemon.close()
}

if (import.meta.main) await main(process.argv[2]!)
