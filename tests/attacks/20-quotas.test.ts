// What a realm may use of the hub: what goes over a quota is refused with words, what daemons report of their runs never
// is, and what is used is counted exactly, whoever calls at the same time and whatever becomes of the runs.

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { and, eq, inArray } from 'drizzle-orm'
import { siteQuotas } from '../../lib/hub/access/quotas.ts'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { phaseChange, runChange } from '../support/sync.ts'

const KEY_TEAM = `name: "@admin/keyed"
version: 1.0.0
concurrency: { key: one, when_full: skip }
phases:
  - { name: say, agent: http, sources: [{ name: a, url: "https://example.com/" }] }
`

let hub: TestHub
let team: string
let keyed: string
let realm_id: string
let daemon: { token: string; daemon_id: string }
let seq: number
let epoch: string
let realms = 0

beforeAll(async () => {
  hub = await startTestHub({ env: { CADRE_ARTIFACTS: Bun.pathToFileURL(folder()).href, CADRE_QUOTA_STREAMS: '2' } })
  team = await hub.addTeam(KEY_TEAM.replace('keyed', 't').replace(/concurrency.*\n/, ''))
  keyed = await hub.addTeam(KEY_TEAM)
})
afterAll(() => hub.stop())

beforeEach(async () => {
  const made = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug: `r${++realms}`, name: 'r' })
  realm_id = made.id
  for (const name of [team, keyed]) await hub.ok(hub.admin, 'realms/add_team', { realm_id, team: name })
  const { token } = await hub.realmToken(hub.admin, realm_id)
  daemon = { token, daemon_id: (await hub.ok(token, 'daemons/register', { name: 'd' })).daemon_id }
  seq = 0
  epoch = crypto.randomUUID()
})

const set = (quotas: object) => hub.ok(hub.admin, 'realms/update', { realm_id, quotas })
const get = () => hub.ok(hub.admin, 'realms/get', { realm_id })
const dispatch = (more: object = {}) => hub.call(hub.admin, 'dispatch/run', { realm_id, team, ...more })

async function report(...changes: object[]) {
  const numbered = changes.map(change => ({ ...change, seq: ++seq }))
  const body = { daemon_id: daemon.daemon_id, epoch, from_seq: numbered[0]!.seq, protocol: 1, changes: numbered }
  return hub.ok(daemon.token, 'runs/sync', body)
}

/** The number of runs that wait, as the jobs say. */
async function waiting(): Promise<number> {
  const { jobs, db } = hub.store
  const open = inArray(jobs.state, ['waiting', 'blocked', 'leased'])
  return (
    await db
      .select({ id: jobs.id })
      .from(jobs)
      .where(and(eq(jobs.realm_id, realm_id), eq(jobs.kind, 'run'), open))
  ).length
}

describe('realms/update', () => {
  test('takes quotas from site admins only, and realms/get tells them with what is used', async () => {
    const owner = await hub.account(`owner${realms}`)
    await hub.ok(hub.admin, 'realms/add_member', { realm_id, username: `owner${realms}`, role: 'admin' })
    const refused = await hub.call(owner.token, 'realms/update', { realm_id, quotas: { waiting: 5 } })
    expect([refused.status, refused.error.code]).toEqual([403, 'forbidden'])
    const none = { waiting: null, dispatches_per_minute: null, stored_bytes: null, log_bytes: null, streams: null }
    expect(await get()).toMatchObject({ quotas: { ...none, streams: 2 }, use: { ...none, streams: 0 } })
    await dispatch()
    const after = await set({ waiting: 3, log_bytes: 100, streams: null })
    expect(after).toMatchObject({
      quotas: { ...none, waiting: 3, log_bytes: 100 },
      use: { ...none, waiting: 1, log_bytes: 0 },
    })
    expect((await hub.ok(owner.token, 'realms/get', { realm_id })).quotas.waiting).toBe(3)
    expect((await set({ waiting: null })).quotas).toEqual({ ...none, log_bytes: 100 })
    const reset = await hub.ok(hub.admin, 'realms/update', { realm_id, quotas: null })
    expect(reset.quotas).toEqual({ ...none, streams: 2 })
    for (const quotas of [{ waiting: -1 }, { waiting: 1.5 }, { others: 1 }]) {
      expect((await hub.call(hub.admin, 'realms/update', { realm_id, quotas })).status).toBe(400)
    }
  })

  test('a default of the site is read from the environment, and a wrong one is named', () => {
    expect(siteQuotas({ CADRE_QUOTA_WAITING: '5', CADRE_QUOTA_LOG_BYTES: '' })).toMatchObject({
      waiting: 5,
      log_bytes: null,
    })
    expect(() => siteQuotas({ CADRE_QUOTA_STREAMS: 'many' })).toThrow('CADRE_QUOTA_STREAMS: expected a whole number')
  })
})

describe('dispatches', () => {
  test('beyond the runs that may wait are refused until some have begun', async () => {
    await set({ waiting: 2 })
    for (let at = 0; at < 2; at++) expect((await dispatch()).status).toBe(201)
    const over = await dispatch()
    expect([over.status, over.error]).toMatchObject([429, { code: 'rate_limited', reason: 'waiting' }])
    expect(Number(over.headers.get('retry-after'))).toBeGreaterThan(0)
    const poll = { daemon_id: daemon.daemon_id, slots: 1, wait_ms: 0, protocol: 1 }
    const { jobs } = await hub.ok(daemon.token, 'daemons/poll', poll)
    // Until its daemon has accepted it, the run waits.
    expect((await dispatch()).status).toBe(429)
    const { job_id, lease_id } = jobs[0]
    const answer = { daemon_id: daemon.daemon_id, job_id, lease_id, status: 'accepted' }
    for (let again = 0; again < 2; again++) await hub.ok(daemon.token, 'daemons/ack', answer)
    expect((await dispatch()).status).toBe(201)
    expect((await dispatch()).status).toBe(429)
  })

  test('of a minute are refused beyond their number, whoever sends them at once', async () => {
    await set({ dispatches_per_minute: 5 })
    const replies = await Promise.all(Array.from({ length: 20 }, () => dispatch()))
    expect(replies.filter(({ status }) => status === 201)).toHaveLength(5)
    const refused = replies.filter(({ status }) => status === 429)
    expect(refused).toHaveLength(15)
    for (const { error, headers } of refused) {
      expect(error).toMatchObject({ code: 'rate_limited', reason: 'dispatches_per_minute' })
      expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60)
    }
    expect((await get()).use.dispatches_per_minute).toBe(5)
    await hub.skew(61_000)
    expect((await dispatch()).status).toBe(201)
    await hub.skew(0)
  })

  test('are counted exactly, whatever becomes of the runs', async () => {
    await set({ waiting: 30 })
    const made = await Promise.all(Array.from({ length: 40 }, () => dispatch()))
    const ids = made.filter(({ status }) => status === 201).map(({ data }) => data.run_id)
    expect(ids).toHaveLength(30)
    const same = async () => expect((await get()).use.waiting).toBe(await waiting())
    await same()
    for (const run_id of ids.slice(0, 5)) await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
    await same()
    expect((await dispatch({ queue_timeout: '1s' })).status).toBe(201)
    await dispatch({ team: keyed })
    // The key is held, so this one is skipped at once.
    await dispatch({ team: keyed })
    await same()
    const poll = { daemon_id: daemon.daemon_id, slots: 10, wait_ms: 0, protocol: 1 }
    const { jobs } = await hub.ok(daemon.token, 'daemons/poll', poll)
    for (const [at, { job_id, lease_id }] of jobs.entries()) {
      const status = at % 3 === 0 ? 'failed' : 'accepted'
      await hub.ok(daemon.token, 'daemons/ack', { daemon_id: daemon.daemon_id, job_id, lease_id, status })
    }
    await same()
    await hub.skew(10_000)
    await until(async () => (await get()).use.waiting === (await waiting()), 'the late run to be given up')
    await same()
    await hub.skew(0)
  })
})

describe('what daemons send', () => {
  test('files beyond the bytes of the realm are refused with words, and one that is stored costs nothing again', async () => {
    await set({ stored_bytes: 10 })
    const run_id = crypto.randomUUID()
    const file = (content: string) => ({
      ...{ name: 'a', path: `files/say/${content}`, bytes: content.length },
      sha256: new Bun.CryptoHasher('sha256').update(content).digest('hex'),
    })
    await report(runChange(run_id), phaseChange(run_id, [file('12345678'), file('abc'), file('de')]))
    const offer = ({ sha256, bytes }: ReturnType<typeof file>) =>
      hub.call(daemon.token, 'artifacts/offer', { daemon_id: daemon.daemon_id, run_id, sha256, bytes })
    for (let again = 0; again < 3; again++) expect((await offer(file('12345678'))).status).toBe(200)
    const over = await offer(file('abc'))
    expect([over.status, over.error]).toMatchObject([413, { code: 'too_large', reason: 'stored_bytes' }])
    expect(over.error.message).toContain('quota stored_bytes')
    expect((await offer(file('de'))).status).toBe(200)
    expect((await get()).use.stored_bytes).toBe(10)
  })

  test('lines beyond the bytes of the realm are left out, which is said; states and receipts are always taken', async () => {
    await set({ log_bytes: 100 })
    const run_id = crypto.randomUUID()
    const line = (number: number) => ({ seq: number, phase: null, at: number, stream: 'stdout', text: 'x'.repeat(30) })
    const log = (...numbers: number[]) => ({ kind: 'log', run_id, attempt: 1, lines: numbers.map(line), ended: false })
    expect(await report(runChange(run_id), log(1, 2))).toMatchObject({ acked_seq: 2, rejected: [] })
    const receipt = { phase: 'say', entry: 'a', state: 'sent' }
    const ended = { state: 'completed', completed_at: 2_000, outputs: { a: 1 } }
    const rest = [
      log(3, 4, 5),
      { kind: 'receipt', run_id, attempt: 1, receipt },
      phaseChange(run_id),
      runChange(run_id, ended),
    ]
    expect(await report(...rest)).toMatchObject({ acked_seq: 6, rejected: [], cut_lines: 2 })
    const logs = await hub.ok(hub.admin, 'runs/logs', { run_id })
    expect(logs.lines.map(({ seq }: { seq: number }) => seq)).toEqual([1, 2, 3])
    expect(logs).toMatchObject({ missing: [{ from: 4, to: 5 }], cut: true })
    expect(await hub.ok(hub.admin, 'runs/get', { run_id })).toMatchObject({ state: 'completed', outputs: { a: 1 } })
    expect((await get()).use.log_bytes).toBe(90)
    // A quota that is raised lets lines in again, also those that were left out.
    await set({ log_bytes: 1_000 })
    expect(await report(log(4, 5, 6))).toMatchObject({ acked_seq: 7, rejected: [] })
    expect((await get()).use.log_bytes).toBe(180)
    expect((await hub.ok(hub.admin, 'runs/logs', { run_id })).missing).toEqual([])
  })
})

test('streams beyond their number are refused, and one that ends makes room', async () => {
  const run_id = crypto.randomUUID()
  await report(runChange(run_id))
  const open = async () => {
    const gone = new AbortController()
    const headers = { authorization: `Bearer ${hub.admin}` }
    const reply = await fetch(`${hub.url}/v1/runs/stream?run_id=${run_id}`, { headers, signal: gone.signal })
    return { reply, close: () => gone.abort() }
  }
  const [first, second] = [await open(), await open()]
  expect([first.reply.status, second.reply.status]).toEqual([200, 200])
  const third = await open()
  expect(third.reply.status).toBe(429)
  expect(Number(third.reply.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(((await third.reply.json()) as { error: object }).error).toMatchObject({
    code: 'rate_limited',
    reason: 'streams',
  })
  await until(async () => (await get()).use.streams === 2, 'both streams')
  first.close()
  const again = await until(async () => {
    const next = await open()
    if (next.reply.status === 200) return next
    await next.reply.body?.cancel()
    return false
  }, 'room for another stream')
  second.close()
  again.close()
  await until(async () => (await get()).use.streams === 0, 'no stream')
})
