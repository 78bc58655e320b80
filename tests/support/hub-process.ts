// A hub in its own process for tests. It serves like `bun hub.ts serve`, but a test can set its clock, read its log and
// flush the buffered times of use over IPC. Arguments: the database, its home, the password of `admin`, what hashes of
// passwords cost, as JSON, the port, and by how many milliseconds its clock is ahead.

import { openStore } from '../../db/hub/store.ts'
import { hubApp } from '../../hub.ts'
import { listen, stopOnSignal } from '../../lib/http/listen.ts'
import { firstStart } from '../../lib/hub/access/accounts.ts'
import { artifactStore } from '../../lib/hub/artifacts/artifacts.ts'
import { startChores } from '../../lib/hub/chores/chores.ts'
import { hubConfig } from '../../lib/hub/config.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { WEBHOOK_TOPIC } from '../../lib/hub/webhooks/webhooks.ts'
import { createLog } from '../../lib/log/log.ts'
import { openTracer } from '../../lib/log/tracing.ts'
import { type Answer, METRICS_TOKEN, type Question } from './hub-processes.ts'

const given = process.argv.slice(2) as [string, string, string, string, string, string]
const [database, home, password, cost, port, ahead] = given
const lines: string[] = []
let skew = Number(ahead)

const log = createLog({ level: 'debug', format: 'json', write: line => lines.push(line) })
const hub = createHub({
  store: await openStore(database),
  log,
  tracer: await openTracer(process.env, 'cadre-hub', log),
  now: () => Date.now() + skew,
  home,
  passwordCost: JSON.parse(cost),
  ...(process.env.TEST_BEAT_MS && { beatMs: Number(process.env.TEST_BEAT_MS) }),
  // Receivers of the tests. The other addresses of this machine stay refused.
  webhookAllow: ['127.0.0.1'],
  metricsToken: METRICS_TOKEN,
  artifacts: artifactStore(process.env),
  trustProxy: hubConfig({}).trustProxy,
})
await hub.lineage.open()
await firstStart(hub, { username: 'admin', password })
const listening = listen(hubApp(hub), { host: '127.0.0.1', port: Number(port) })
const chores = startChores(hub, hubConfig({}))
stopOnSignal(listening, hub.log, async () => {
  await chores.stop()
  await hub.close()
})

process.on('message', async ({ id, ask, ms = 0 }: Question) => {
  if (ask === 'skew') {
    skew = ms
    // What is due by now is not waited for.
    void chores.runDue()
    hub.notifier.notify(WEBHOOK_TOPIC)
  }
  if (ask === 'flush') await hub.lastSeen.flush()
  if (ask === 'webhooks') hub.notifier.notify(WEBHOOK_TOPIC)
  process.send!({ id, lines: ask === 'log' ? lines : [] } satisfies Answer)
})
// The test process has ended.
process.on('disconnect', () => process.exit())
process.send!({ id: 0, url: listening.url, lines: [] } satisfies Answer)
