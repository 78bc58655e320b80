// GET /metrics of the hub: who reads it, and what it says about jobs, runs, daemons, requests and sign-ins.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eq, isNull } from 'drizzle-orm'
import { statusOf } from '../../lib/hub/access/daemons.ts'
import { HubMetrics } from '../../lib/hub/metrics.ts'
import { createHub } from '../../lib/hub/serve.ts'
import { createLog } from '../../lib/log/log.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { METRICS_TOKEN } from '../support/served-hub.ts'
import { runChange } from '../support/sync.ts'

let hub: TestHub
beforeAll(async () => {
  hub = await startTestHub()
})
afterAll(() => hub.stop())

/** As many hubs as there may be, so that each has been asked. */
const HUBS = Number(process.env.TEST_HUBS ?? 1)

const read = (token: string | null) =>
  fetch(`${hub.url}/metrics`, { headers: token === null ? {} : { authorization: `Bearer ${token}` } })

/** The values of a metric over all hubs, by its labels. What a process counts is summed, if `summed`. */
async function values(name: string, summed = false): Promise<Record<string, number>> {
  const found: Record<string, number> = {}
  for (let count = 0; count < HUBS; count++) {
    for (const line of (await (await read(METRICS_TOKEN)).text()).split('\n')) {
      const [, labels = '', value] = line.startsWith(name) ? (/^\w+(?:\{(.*)\})? (\S+)$/.exec(line) ?? []) : []
      if (value === undefined || !/^[{ ]/.test(line.slice(name.length))) continue
      found[labels] = Number(value) + (summed ? (found[labels] ?? 0) : 0)
    }
  }
  return found
}

test('is read with the token for it, or with that of a site admin who may read every realm', async () => {
  const { token: person } = await hub.account('somebody')
  const { token: realm } = await hub.realmToken(hub.admin, hub.realm)
  const mint = async (permissions: object) =>
    (await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'x', permissions })).token as string
  const all = { orgs: '*', realms: '*' }
  const callers: [string, string | null, number][] = [
    ['nobody', null, 401],
    ['the token with a sign more', `${METRICS_TOKEN}x`, 401],
    ['no token', 'x', 401],
    ['a person', person, 403],
    ['a daemon', realm, 403],
    ['an admin’s token for other things', await mint({ domains: all, access: { runs: ['admin'] } }), 403],
    ['an admin’s token for one org', await mint({ domains: { orgs: [1] }, access: { realms: ['read'] } }), 403],
    ['an admin’s token for it', await mint({ domains: all, access: { realms: ['read'] } }), 200],
    ['an admin', hub.admin, 200],
    ['the token', METRICS_TOKEN, 200],
  ]
  for (const [who, token, status] of callers) {
    const reply = await read(token)
    expect([who, reply.status]).toEqual([who, status])
    const text = await reply.text()
    expect(text.includes('cadre_')).toBe(status === 200)
    expect(text).not.toContain(METRICS_TOKEN)
  }
  expect((await hub.call(METRICS_TOKEN, 'realms/list')).status).toBe(401)
})

test('every line has the form, every metric is explained, and histograms add up', async () => {
  const text = await (await read(METRICS_TOKEN)).text()
  const explained = new Set([...text.matchAll(/^# TYPE (\w+) (gauge|counter|histogram)$/gm)].map(([, name]) => name))
  const samples = text.split('\n').filter(line => line !== '' && !line.startsWith('#'))
  expect(samples.length).toBeGreaterThan(30)
  for (const line of samples) {
    const [, name] = /^(\w+)(?:\{(?:\w+="[^"]*",?)+\})? -?\d+(?:\.\d+)?(?:e[+-]\d+)?$/.exec(line) ?? [line, null]
    expect([line, explained.has(name?.replace(/_(bucket|sum|count)$/, '') ?? '') || explained.has(name ?? '')]).toEqual(
      [line, true],
    )
  }
})

test('jobs, runs and daemons, by realm and state, and how long a run waited', async () => {
  const realm_id = hub.realm
  await hub.addTeam(TEAM)
  const { token } = await hub.realmToken(hub.admin, realm_id)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'm' })
  const dispatch = () => hub.ok(hub.admin, 'dispatch/run', { daemon_id, team: '@admin/m' })
  const first = await dispatch()
  await dispatch()
  expect(await values('cadre_jobs')).toEqual({ [`realm="${realm_id}",state="waiting"`]: 2 })
  expect(await values('cicd_pipeline_run_active')).toEqual({
    [`realm="${realm_id}",cicd_pipeline_run_state="pending"`]: 2,
  })
  const { jobs } = await hub.ok(token, 'daemons/poll', { daemon_id, slots: 1 })
  const accept = () => hub.ok(token, 'daemons/ack', { daemon_id, ...idsOf(jobs[0]), status: 'accepted' })
  await accept()
  await accept()
  expect(await values('cadre_jobs')).toEqual({
    [`realm="${realm_id}",state="accepted"`]: 1,
    [`realm="${realm_id}",state="waiting"`]: 1,
  })
  const waited = 'cicd_pipeline_run_state="pending"'
  expect(await values('cicd_pipeline_run_duration_seconds_count', true)).toEqual({ [waited]: 1 })
  expect(await values('cicd_workers')).toEqual({ [`realm="${realm_id}",cicd_worker_state="online"`]: 1 })
  const oldest = await values('cadre_jobs_oldest_waiting_seconds')
  expect(oldest[`realm="${realm_id}"`]).toBeGreaterThanOrEqual(0)
  await hub.flush()
  await hub.skew(60_000)
  expect(await values('cicd_workers')).toEqual({ [`realm="${realm_id}",cicd_worker_state="stale"`]: 1 })
  await hub.skew(0)

  const running = { team: '@admin/m', call_path: ['@admin/m'] }
  const changes = [runChange(jobs[0].run_id, running), { kind: 'moon' }, runChange(crypto.randomUUID())]
  const numbered = changes.map((change, index) => ({ seq: index + 1, ...change }))
  const report = { daemon_id, epoch: crypto.randomUUID(), from_seq: 1, changes: numbered }
  await hub.ok(token, 'runs/sync', report)
  await hub.ok(token, 'runs/sync', report)
  expect(first.run_id).toBe(jobs[0].run_id)
  expect(await values('cadre_sync_changes_total', true)).toEqual({ '': 3 })
  expect(await values('cadre_sync_rejected_changes_total', true)).toEqual({
    'code="invalid_request"': 1,
    'code="forbidden"': 1,
  })
  expect(await values('cicd_pipeline_run_active')).toEqual({
    [`realm="${realm_id}",cicd_pipeline_run_state="executing"`]: 1,
    [`realm="${realm_id}",cicd_pipeline_run_state="pending"`]: 1,
  })
})

const idsOf = ({ job_id, lease_id }: { job_id: string; lease_id: string }) => ({ job_id, lease_id })

const TEAM =
  'name: "@admin/m"\nversion: 1.0.0\nphases:\n  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }\n'

test('how runs end that daemons report, or that no daemon takes, once each', async () => {
  const { id: realm_id } = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'ends', name: 'x' })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id, team: '@admin/t' })
  const { token } = await hub.realmToken(hub.admin, realm_id)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'e' })
  const executing = (result: string) => `cicd_pipeline_run_state="executing",cicd_pipeline_result="${result}"`
  const before = await values('cicd_pipeline_run_duration_seconds_count', true)
  const [run_id, other] = [crypto.randomUUID(), crypto.randomUUID()]
  const changes = [
    runChange(run_id, { state: 'completed', completed_at: 8_000 }),
    // The same end again, as with outputs that came later.
    runChange(run_id, { state: 'completed', completed_at: 8_000, outputs: { a: 1 } }),
    // Its clock was set back meanwhile.
    runChange(other, { state: 'failed', completed_at: 900 }),
    runChange(crypto.randomUUID(), { state: 'failed', reason: 'timeout', completed_at: 2_000 }),
  ]
  const numbered = changes.map((change, index) => ({ seq: index + 1, ...change }))
  const report = { daemon_id, epoch: crypto.randomUUID(), from_seq: 1, changes: numbered }
  for (let count = 0; count < 2; count++) expect((await hub.ok(token, 'runs/sync', report)).rejected).toEqual([])
  const dispatched = await hub
    .ok(hub.admin, 'dispatch/run', { daemon_id, team: '@admin/m', realm_id })
    .catch(() => null)
  expect(dispatched).toBeNull()
  const after = await values('cicd_pipeline_run_duration_seconds_count', true)
  const more = (result: string) => (after[executing(result)] ?? 0) - (before[executing(result)] ?? 0)
  expect(['success', 'failure', 'timeout', 'cancellation'].map(more)).toEqual([1, 1, 1, 0])
  const sums = await values('cicd_pipeline_run_duration_seconds_sum', true)
  expect([sums[executing('success')], sums[executing('failure')]]).toEqual([7, 0])

  await hub.ok(hub.admin, 'realms/add_team', { realm_id, team: '@admin/m' })
  const { run_id: waiting } = await hub.ok(hub.admin, 'dispatch/run', { daemon_id, team: '@admin/m' })
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id: waiting })
  const last = await values('cicd_pipeline_run_duration_seconds_count', true)
  expect(last[executing('cancellation')]).toBe(1)
  for (const labels of Object.keys(last)) expect(labels).not.toContain('@admin')
})

test('polls that wait, and what was answered to those that have ended', async () => {
  const { id: realm_id } = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'polls', name: 'x' })
  const { token } = await hub.realmToken(hub.admin, realm_id)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'p' })
  const sum = async (name: string, labels = '') => (await values(name, true))[labels] ?? 0
  const nothing = await sum('cadre_polls_total', 'result="nothing"')
  expect(await sum('cadre_polls_waiting')).toBe(0)
  const poll = hub.ok(token, 'daemons/poll', { daemon_id, wait_ms: 3_000 })
  while ((await sum('cadre_polls_waiting')) === 0) await Bun.sleep(20)
  expect(await sum('cadre_polls_waiting')).toBe(1)
  expect((await poll).jobs).toEqual([])
  expect(await sum('cadre_polls_waiting')).toBe(0)
  expect(await sum('cadre_polls_total', 'result="nothing"')).toBe(nothing + 1)
  expect(await sum('cadre_polls_total', 'result="jobs"')).toBe(1)
}, 30_000)

test('attempts to send messages to webhooks, by what came of them', async () => {
  const { id: realm_id } = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'hooks', name: 'x' })
  await hub.ok(hub.admin, 'realms/add_team', { realm_id, team: '@admin/t' })
  const { token } = await hub.realmToken(hub.admin, realm_id)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'w' })
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: ({ url }) => new Response(null, { status: Number(new URL(url).pathname.slice(1)) }),
  })
  for (const status of [200, 503, 410]) {
    const url = `http://127.0.0.1:${server.port}/${status}`
    await hub.ok(hub.admin, 'realms/add_webhook', { realm_id, url, events: ['run.failed'] })
  }
  const change = runChange(crypto.randomUUID(), { state: 'failed', completed_at: 2_000 })
  const report = { daemon_id, epoch: crypto.randomUUID(), from_seq: 1, changes: [{ seq: 1, ...change }] }
  await hub.ok(token, 'runs/sync', report)
  const results = () => values('cadre_webhook_deliveries_total', true)
  const one = { 'result="delivered"': 1, 'result="retried"': 1, 'result="failed"': 1 }
  for (const end = Date.now() + 20_000; Date.now() < end && !Bun.deepEquals(await results(), one); ) await Bun.sleep(50)
  expect(await results()).toEqual(one)
  expect(await values('cadre_webhook_messages_waiting')).toEqual({ '': 1 })
  server.stop(true)
}, 30_000)

test('sign-ins that failed, whether the password was checked or not', async () => {
  for (let count = 0; count < 12; count++) {
    const { status } = await hub.call(null, 'session/create', { username: 'nobody-here', password: 'wrong' })
    expect(status).toBe(count < 10 ? 401 : 429)
  }
  expect(await values('cadre_sign_in_failures_total', true)).toEqual({ '': 12 })
  const route = 'http_request_method="POST",http_route="/v1/session/create",http_response_status_code="429"'
  const requests = await values('http_server_request_duration_seconds_count', true)
  expect(requests[route]).toBe(2)
}, 60_000)

test('a daemon has the same status in metrics as everywhere else, to the millisecond', async () => {
  const { id: realm_id } = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: 'alone', name: 'x' })
  const { token } = await hub.realmToken(hub.admin, realm_id)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'd' })
  await hub.flush()
  const here = createHub({ store: hub.store, log: createLog({ write: () => {} }), home: folder() })
  const { daemons, db } = hub.store
  const [row] = await db.select().from(daemons).where(eq(daemons.id, daemon_id))
  const seen: string[] = []
  for (const after of [44_999, 45_000, 86_399_999, 86_400_000]) {
    const later = { ...here, lived: () => row!.last_seen_at + after }
    const status = statusOf(later, row!)
    expect(await new HubMetrics(later).text()).toContain(
      `cicd_workers{realm="${realm_id}",cicd_worker_state="${status}"} 1\n`,
    )
    seen.push(status)
  }
  expect(seen).toEqual(['online', 'stale', 'stale', 'offline'])
  await here.lastSeen.close()
})

test('realms beyond the bound are other, in sum as many daemons as there are', async () => {
  const log = createLog({ write: () => {} })
  const here = createHub({ store: hub.store, log, home: folder(), metrics: { series: 1, teams: false } })
  const text = await new HubMetrics(here).text()
  const workers = [...text.matchAll(/^cicd_workers\{realm="([^"]+)",.*\} (\d+)$/gm)]
  const realms = new Set(workers.map(([, realm]) => realm))
  expect([realms.size, realms.has('other')]).toEqual([2, true])
  const { daemons, db } = hub.store
  const all = await db.select({ id: daemons.id }).from(daemons).where(isNull(daemons.removed_at))
  expect(workers.reduce((sum, [, , many]) => sum + Number(many), 0)).toBe(all.length)
  await here.lastSeen.close()
})

test('by how much the clock of a daemon differs at most in a realm, whatever a daemon says', async () => {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const named = async (name: string) => (await hub.ok(token, 'daemons/register', { name })).daemon_id
  const says = async (daemon_id: string, standing: object) => {
    await hub.ok(token, 'daemons/heartbeat', { daemon_id, standing })
    await hub.flush()
    return (await values('cadre_daemon_clocks_apart_seconds'))[`realm="${hub.realm}"`]
  }
  const [ahead, behind] = [await named('ahead'), await named('behind')]
  expect(await says(ahead, { clock_ms: 1_500 })).toBe(1.5)
  expect(await says(behind, { clock_ms: -600_000 })).toBe(600)
  expect(await says(behind, {})).toBe(1.5)
  expect(await says(behind, { clock_ms: null })).toBe(1.5)
  expect(await says(behind, { clock_ms: -1e300 })).toBe(1e297)
  // One that calls no more is told by another alert.
  const { daemons } = hub.store
  await hub.store.write(tx => tx.update(daemons).set({ last_seen_at: 0 }).where(eq(daemons.id, behind)))
  expect((await values('cadre_daemon_clocks_apart_seconds'))[`realm="${hub.realm}"`]).toBe(1.5)
})
