// Attacks on a daemon from elsewhere, with a real hub behind it: credentials that outlive their end, that are used twice,
// or that reach more than they were made for; and proxies that lend their address to strangers.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { eq } from 'drizzle-orm'
import { enqueueJob } from '../../../lib/hub/queue/jobs.ts'
import type { JsonObject } from '../../../lib/json.ts'
import { files, type RunningDaemon, spawnDaemon } from '../../support/daemon.ts'
import { folder } from '../../support/folder.ts'
import { startTestHub, type TestHub } from '../../support/hub.ts'

let hub: TestHub
let daemon: RunningDaemon
let env: Record<string, string>
let daemonId: string

beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token }
  daemon = await spawnDaemon({ home: folder(), env })
  const { daemons } = await hub.ok(hub.admin, 'daemons/list')
  daemonId = daemons[0].id
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

const mint = async (action: string, run_id?: string) =>
  (await hub.ok(hub.admin, 'dispatch/tokens/mint', { daemon_id: daemonId, action, ...(run_id && { run_id }) })).token

const waiting = (name = '@local/waits') =>
  files({
    'team.yml': `name: "${name}"
version: 1.0.0
phases: [{ name: wait, agent: exec, commands: [{ name: w, run: sleep 60 }] }]
`,
  })

const message = { type: 'workspace_list', version: 1, id: 't', timestamp: 1, run_id: null, instance_id: null }

test('a proxy on this machine has no exemption', async () => {
  for (const name of ['X-Forwarded-For', 'Forwarded', 'Via', 'X-Real-IP']) {
    const headers = { [name]: '127.0.0.1' }
    expect([name, (await daemon.post('/v1/runs/list', {}, headers)).status]).toEqual([name, 403])
    expect((await fetch(`${daemon.url}/metrics`, { headers })).status).toBe(403)
    // The local token is a credential, however it comes.
    expect((await daemon.post('/v1/runs/list', {}, { ...headers, ...bearer(daemon.token) })).status).toBe(200)
  }
})

test('a site admin who is no member of the realm calls no daemon of it, whatever the hub mints', async () => {
  const { token: other, id } = await hub.account('outsider')
  await hub.ok(hub.admin, 'users/update', { user_id: id, site_admin: true })
  const post = (path: string, body: object, credential: string) => daemon.post(path, body, bearer(credential))
  const call = async (action: string) => {
    const { token } = await hub.ok(other, 'dispatch/tokens/mint', { daemon_id: daemonId, action })
    if (action === 'access') return (await post('/v1/runs/list', {}, token)).status
    return (await post('/v1/runs/resume', { run_id: crypto.randomUUID() }, token)).status
  }
  expect((await post('/v1/runs/list', {}, other)).status).toBe(401)
  for (const action of ['access', 'execute', 'cancel']) expect([action, await call(action)]).toEqual([action, 401])
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'outsider', role: 'member' })
  expect([await call('access'), await call('execute')]).toEqual([200, 403])
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'outsider', role: 'operator' })
  expect(await call('execute')).toBe(404)
})

test('a token bound to one run reads the tree of that run and nothing else', async () => {
  const team = '@admin/waits'
  await hub.addTeam(readFileSync(join(waiting(team), 'team.yml'), 'utf8'))
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { daemon_id: daemonId, team })
  const { run_id: other } = await daemon.call('/v1/runs/start', { path: waiting() })
  const access = bearer(await mint('access', run_id))
  const get = () => daemon.post('/v1/runs/get', { run_id }, access)
  for (const until = Date.now() + 20_000; (await get()).status !== 200 && Date.now() < until; ) await Bun.sleep(25)
  const reads = ['runs/get', 'runs/tree', 'runs/logs', 'runs/history', 'runs/why', 'reviews/list', 'artifacts/list']
  for (const path of reads) {
    expect([path, (await daemon.post(`/v1/${path}`, { run_id }, access)).status]).toEqual([path, 200])
    expect([path, (await daemon.post(`/v1/${path}`, { run_id: other }, access)).status]).toEqual([path, 403])
  }
  const refused = [
    await daemon.post('/v1/runs/list', {}, access),
    await daemon.post('/v1/reviews/list', {}, access),
    await daemon.post('/v1/workspaces/get', { ...message, payload: {} }, access),
    await fetch(`${daemon.url}/metrics`, { headers: access }),
    await daemon.post('/v1/runs/phases', { ...message, type: 'run_phases', payload: { run_id: other } }, access),
    await fetch(`${daemon.url}/v1/runs/stream?run_id=${other}`, { headers: access }),
    await fetch(`${daemon.url}/v1/runs/log?run_id=${other}`, { headers: access }),
    await daemon.post('/v1/runs/team', { run_id }, access),
    await daemon.post('/v1/agents/doctor', {}, access),
    await fetch(`${daemon.url}/v1/artifacts/get?run_id=${other}&path=files/a/b`, { headers: access }),
    await daemon.post('/v1/runs/cancel', { run_id: other }, bearer(await mint('cancel', run_id))),
    await daemon.post('/v1/runs/resume', { run_id: other }, bearer(await mint('execute', run_id))),
    await daemon.post('/v1/runs/start', { team }, bearer(await mint('execute', run_id))),
  ]
  expect(refused.map(({ status }) => status)).toEqual(refused.map(() => 403))
  await daemon.call('/v1/runs/cancel', { run_id })
  await daemon.call('/v1/runs/cancel', { run_id: other })
})

test('a token that starts work counts once, over a restart too', async () => {
  const execute = bearer(await mint('execute'))
  // There is no such run, which is told after the token is used up.
  expect((await daemon.post('/v1/runs/resume', { run_id: 'none' }, execute)).status).toBe(404)
  expect((await daemon.post('/v1/runs/resume', { run_id: 'none' }, execute)).status).toBe(401)
  const { home } = daemon
  await daemon.stop()
  daemon = await spawnDaemon({ home, env })
  expect((await daemon.post('/v1/runs/resume', { run_id: 'none' }, execute)).status).toBe(401)
  const fresh = bearer(await mint('execute'))
  expect((await daemon.post('/v1/runs/resume', { run_id: 'none' }, fresh)).status).toBe(404)
})

test('a stream ends within 5 s after its token does', async () => {
  const { run_id } = await daemon.call('/v1/runs/start', { path: waiting() })
  const { id, token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'reader' })
  const open = (headers: Record<string, string>) =>
    fetch(`${daemon.url}/v1/runs/stream?run_id=${run_id}`, { headers, signal: AbortSignal.timeout(60_000) })
  const reply = await open(bearer(token))
  const ours = await open({})
  expect([reply.status, ours.status]).toEqual([200, 200])
  await hub.ok(hub.admin, 'auth/revoke_token', { id })
  const revoked = performance.now()
  await reply.text()
  expect(performance.now() - revoked).toBeLessThan(5_000)
  // The hub makes one that expires in 4 s: its clock is behind, that of the daemon is not.
  await hub.skew(-296_000)
  const short = await mint('access')
  await hub.skew(0)
  const expires = JSON.parse(Buffer.from(short.split('.')[1], 'base64url').toString()).exp * 1_000
  await (await open(bearer(short))).text()
  const late = Date.now() - expires
  expect([late >= 0, late < 5_000, late]).toEqual([true, true, late])
  // The one that is still allowed goes on until the run ends.
  await daemon.call('/v1/runs/cancel', { run_id })
  expect(await ours.text()).toContain('event: end')
}, 70_000)

test('a decision that comes through the hub is held to the form here too', async () => {
  const text = `name: "@admin/asks"
version: 1.0.0
phases: [{ name: ask, type: gate, review: { prompt: Fine?, reviewers: [admin], inputs: [{ name: why, type: string, required: true }] } }]
`
  const team = '@admin/asks'
  await hub.addTeam(text)
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { daemon_id: daemonId, team })
  const reviews = async () => (await hub.ok(hub.admin, 'reviews/list', { run_id })).reviews
  for (const until = Date.now() + 20_000; (await reviews()).length === 0 && Date.now() < until; ) await Bun.sleep(25)
  const [review] = await reviews()
  /** As a hub would that checks nothing. */
  const order = async (by: string, values: JsonObject) => {
    const payload = { review_id: review.id, decision: 'approve', by, values }
    const job = { realm_id: hub.realm, run_id, kind: 'decide' as const, payload, created_by: 1, daemon_id: daemonId }
    const { id } = await hub.store.write(tx => enqueueJob(hub.store, tx, job, Date.now()))
    // This wakes the poll, as the hub does for an order that it took itself.
    await hub.ok(hub.admin, 'daemons/update', { daemon_id: daemonId, paused: false })
    const row = async () => (await hub.store.db.select().from(hub.store.jobs).where(eq(hub.store.jobs.id, id)))[0]!
    for (const until = Date.now() + 30_000; (await row()).finished_at === null && Date.now() < until; ) {
      await Bun.sleep(50)
    }
    return (await row()).state
  }
  expect(await order('admin', {})).toBe('failed')
  expect(await order('eve', { why: 'x' })).toBe('failed')
  expect(await order('admin', { why: 'x' })).toBe('done')
  expect((await daemon.ended(run_id)).state).toBe('completed')
  expect(await order('admin', { why: 'x' })).toBe('done')
}, 120_000)

test('while the key is rotated no call is refused', async () => {
  const statuses: number[] = []
  let goes = true
  const callers = Array.from({ length: 4 }, async () => {
    while (goes) statuses.push((await daemon.post('/v1/runs/list', {}, bearer(await mint('access')))).status)
  })
  for (let rotation = 0; rotation < 3; rotation++) {
    const signedBefore = await Promise.all(Array.from({ length: 5 }, () => mint('access')))
    await hub.ok(hub.admin, 'dispatch/keys/rotate', { org_id: '1' })
    for (const token of signedBefore) statuses.push((await daemon.post('/v1/runs/list', {}, bearer(token))).status)
    const due = statuses.length + 40
    while (statuses.length < due) await Bun.sleep(5)
  }
  goes = false
  await Promise.all(callers)
  expect(statuses.filter(status => status !== 200)).toEqual([])
}, 60_000)
