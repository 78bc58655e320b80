// The thread that sends heartbeats is started again when it dies: at its start, by an error, and by ending.

import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { migrate, readMigrations } from '../../db/open.ts'
import { Link } from '../../lib/daemon/link/link.ts'
import { SyncOutbox } from '../../lib/daemon/link/outbox/outbox.ts'
import { OwnStanding } from '../../lib/daemon/link/own-standing.ts'
import { livedMs } from '../../lib/lived-time.ts'
import { createLog } from '../../lib/log/log.ts'
import { Store } from '../../lib/run/engine.ts'
import { createRedactor } from '../../lib/secrets/redact.ts'
import { commitTo } from '../support/commit.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'

const ROOT = resolve(import.meta.dir, '../..')

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

/** How many heartbeats the hub has answered with 200. */
async function beats(): Promise<number> {
  const reply = await fetch(`${hub.url}/metrics`, { headers: { authorization: `Bearer ${hub.admin}` } })
  const line = /^http_server_request_duration_seconds_count\{[^}]*daemons\/heartbeat[^}]*"200"\} (\d+)$/m
  return Number(line.exec(await reply.text())?.[1] ?? 0)
}

test('a thread that dies is replaced until heartbeats reach the hub', async () => {
  const home = folder()
  const births = join(home, 'births')
  writeFileSync(births, '')
  const heartbeat = join(home, 'heartbeat.ts')
  // The first does not start, the second fails while it works, the third ends without a word, and the fourth is whole.
  writeFileSync(
    heartbeat,
    `import { appendFileSync, readFileSync } from 'node:fs'
appendFileSync(${JSON.stringify(births)}, 'x')
const count = readFileSync(${JSON.stringify(births)}).length
if (count === 1) throw new Error('the first does not start')
if (count === 2) setTimeout(() => { throw new Error('the second fails') }, 50)
if (count === 3) setTimeout(() => process.exit(0), 50)
if (count > 3) require(${JSON.stringify(join(ROOT, 'lib/daemon/link/heartbeat-thread.ts'))})
`,
  )
  const db = new Database(join(home, 'runs.db'), { strict: true })
  migrate(db, ':memory:', await readMigrations(join(ROOT, 'db/daemon/migrations')))
  const lines: string[] = []
  const store = new Store(db)
  const never = async () => {
    throw new Error('no job was dispatched')
  }
  const log = createLog({ format: 'json', write: line => lines.push(line) })
  const link = new Link({
    hubUrl: hub.url,
    realmToken: (await hub.realmToken(hub.admin, hub.realm)).token,
    name: 'beating',
    version: '1.0.0',
    capacity: 1,
    isDiskFull: () => false,
    log,
    store,
    commit: commitTo(db),
    lived: livedMs,
    confirmed() {},
    outbox: new SyncOutbox({
      store,
      commit: commitTo(db),
      mode: 'full',
      stateDir: runId => join(home, runId),
      bundle: () => {
        throw new Error('no run is reported')
      },
      lived: () => 0,
      log,
    }),
    pinnedKey: null,
    fileOf: never,
    network: () => ({ allow: [] }),
    jobs: {
      freeSlots: () => 1,
      mask: createRedactor().json,
      attempt: () => null,
      prepare: never,
      start: never,
      ended: never,
      cancel: never,
      resume: never,
      decide: never,
      tell: never,
    },
    standing: new OwnStanding(async () => ({}), log),
    offers: {
      examine() {},
      stop: async () => {},
      current: async () => ({
        labels: {},
        agents: [],
        workspaces: [],
        sandbox: 'none',
        kinds: [],
        accounts: [],
        environments: [],
      }),
    },
    enrolled: async () => {},
    heartbeat,
  })
  await link.start()
  try {
    for (const end = Date.now() + 40_000; (await beats()) === 0; await Bun.sleep(50)) {
      if (Date.now() > end) throw new Error(`no heartbeat came: ${readFileSync(births)} ${lines.join('\n')}`)
    }
    const failures = lines.filter(line => line.includes('the heartbeat failed; starting it again'))
    expect(failures).toHaveLength(3)
    expect(failures[0]).toContain('the first does not start')
    expect(failures[1]).toContain('the second fails')
    expect(failures[2]).toContain('its thread has ended')
    expect(readFileSync(births, 'utf8')).toBe('xxxx')
  } finally {
    await link.stop()
    db.close()
  }
  // A thread that was told to end is not started again.
  await Bun.sleep(1_500)
  expect(readFileSync(births, 'utf8')).toBe('xxxx')
}, 60_000)
