// `notify.on_fail` of a realm: what fails becomes a job of kind `tell`, for a daemon that has the account and takes such jobs,
// and for nobody else.

import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { eq } from 'drizzle-orm'
import { holdJobsOfCopy } from '../../lib/hub/lineage/hold-jobs.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { runChange } from '../support/sync.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

// biome-ignore lint/suspicious/noExplicitAny: the data of all calls
type Data = any

let hub: TestHub
let token: string
let ahead = 0
beforeAll(async () => {
  hub = await startTestHub()
  token = (await hub.realmToken(hub.admin, hub.realm)).token
  await hub.addTeam(
    'name: "@admin/job"\nversion: 1.0.0\nphases: [{ name: a, agent: exec, commands: [{ name: c, run: "true" }] }]\n',
  )
})
afterAll(() => hub.stop())
beforeEach(async () => {
  for (const { id } of (await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })).daemons) {
    await hub.call(hub.admin, 'daemons/remove', { daemon_id: id })
  }
  await notify({ on_fail: ['chat:ops'] })
})

const notify = (given: Data) => hub.ok(hub.admin, 'realms/update', { realm_id: hub.realm, notify: given })

async function later(ms: number): Promise<void> {
  ahead += ms
  await hub.skew(ahead)
}

/** A daemon that a test plays. */
async function daemon(offer: object) {
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'd', ...offer })
  const epoch = crypto.randomUUID()
  let seq = 0
  return {
    id: daemon_id as string,
    poll: async (wait_ms = 0): Promise<Data[]> => (await hub.ok(token, 'daemons/poll', { daemon_id, wait_ms })).jobs,
    ack: (job: Data, status: string, error?: string) => {
      const { job_id, lease_id } = job
      return hub.call(token, 'daemons/ack', { daemon_id, job_id, lease_id, status, ...(error && { error }) })
    },
    /** Reports a run that has failed. */
    async report(run: object = {}) {
      seq++
      const ended = { state: 'failed', completed_at: Date.now() + ahead }
      const of = { team: '@admin/job', call_path: ['@admin/job'], ...ended, ...run }
      const change = runChange(Bun.randomUUIDv7(), of)
      const changes = [{ seq, ...change }]
      await hub.ok(token, 'runs/sync', { daemon_id, epoch, from_seq: seq, changes })
      return change.run_id
    },
  }
}

const TELLS = { kinds: ['run', 'tell'], accounts: ['chat:ops'] }
const tellsIn = async (): Promise<Data[]> =>
  (await hub.store.db.select().from(hub.store.tells)).map(({ account, state, error }) => ({ account, state, error }))
const clear = () => hub.store.write(tx => tx.delete(hub.store.tells))

test('a run that fails is told by a daemon that has the account, once, and by no other', async () => {
  await clear()
  const [teller, older, other] = [
    await daemon(TELLS),
    await daemon({ agents: [{ name: 'chat', version: '1.0.0' }] }),
    await daemon({ kinds: ['tell'], accounts: ['chat:own'] }),
  ]
  const error = { code: 'failed', message: 'exit 3', phase: 'a' }
  const run_id = await older.report({ run_name: 'nightly', error })
  expect([await older.poll(), await other.poll()]).toEqual([[], []])
  const [job, ...more] = await teller.poll()
  expect(more).toEqual([])
  expect(job).toMatchObject({ kind: 'tell', run_id: null, attempt: 1, payload: { account: 'chat:ops' } })
  const { text } = job.payload
  for (const part of ['@admin/job', `nightly (${run_id})`, 'failed', 'phase a: exit 3']) expect(text).toContain(part)
  expect((await teller.ack(job, 'accepted')).status).toBe(200)
  await later(2 * MINUTE)
  expect(await teller.poll()).toEqual([])
  expect((await teller.ack(job, 'done')).status).toBe(200)
  expect((await teller.ack(job, 'done')).status).toBe(200)
  expect((await teller.ack(job, 'failed')).status).toBe(409)
  expect(await tellsIn()).toEqual([{ account: 'chat:ops', state: 'done', error: null }])
})

test('a lease that is over gives the job to another daemon, and the first may not tell any more', async () => {
  await clear()
  const [one, two] = [await daemon(TELLS), await daemon(TELLS)]
  await one.report()
  const [first] = await one.poll()
  expect(await two.poll()).toEqual([])
  await later(61_000)
  const [second] = await two.poll()
  expect(second).toMatchObject({ job_id: first.job_id, attempt: 2 })
  expect((await one.ack(first, 'accepted')).status).toBe(409)
  expect((await two.ack(second, 'failed', 'no such room')).status).toBe(200)
  expect(await tellsIn()).toEqual([{ account: 'chat:ops', state: 'failed', error: 'no such room' }])
})

test('without a daemon that is online and has the account it is told by webhooks only, and the realm says so', async () => {
  await clear()
  const { notify: before } = await hub.ok(hub.admin, 'realms/get', { realm_id: hub.realm })
  expect(before).toEqual({ on_fail: ['chat:ops'], unreached: ['chat:ops'] })
  const mute = await daemon({ kinds: ['run'], accounts: ['chat:ops'] })
  await mute.report()
  const teller = await daemon(TELLS)
  expect(await teller.poll()).toEqual([])
  expect(await tellsIn()).toMatchObject([{ state: 'failed', error: 'no daemon that is online has this account' }])
  expect((await hub.ok(hub.admin, 'realms/get', { realm_id: hub.realm })).notify.unreached).toEqual([])
  await later(MINUTE)
  expect((await hub.ok(hub.admin, 'realms/get', { realm_id: hub.realm })).notify.unreached).toEqual(['chat:ops'])
})

test('what a listener of the team has told is not told again, and neither is what the home has told the account', async () => {
  await clear()
  await notify({ on_fail: ['chat:ops', 'chat:own'] })
  const teller = await daemon({ ...TELLS, accounts: ['chat:ops', 'chat:own'] })
  const delivery = (phase: string, event = 'on_fail') => ({ phase, event, state: 'pending', error: null })
  await teller.report({ deliveries: [delivery('shout')] })
  expect(await tellsIn()).toEqual([])
  await teller.report({ deliveries: [delivery('shout', 'on_start'), delivery('notify.on_fail chat:ops')] })
  expect((await tellsIn()).map(({ account }) => account)).toEqual(['chat:own'])
})

test('a run that no daemon takes is told, and what does not fail is not', async () => {
  await clear()
  const teller = await daemon(TELLS)
  await teller.report({ state: 'completed' })
  await teller.report({ state: 'cancelled' })
  expect(await tellsIn()).toEqual([])
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/job' })
  const [job] = await teller.poll()
  await teller.ack(job, 'failed', 'no room')
  const [tell] = await teller.poll()
  expect(tell.payload.text).toContain(run_id)
  expect(tell.payload.text).toContain('refused the run: no room')
})

test('a poll that waits is woken', async () => {
  await clear()
  const teller = await daemon(TELLS)
  const waiting = teller.poll(20_000)
  await teller.report()
  expect(await waiting).toMatchObject([{ kind: 'tell', payload: { account: 'chat:ops' } }])
}, 30_000)

test('what nobody takes within an hour is over', async () => {
  await clear()
  const teller = await daemon(TELLS)
  await teller.report()
  await later(HOUR + MINUTE)
  for (const end = Date.now() + 60_000; (await tellsIn())[0].state === 'waiting'; await Bun.sleep(50)) {
    if (Date.now() > end) throw new Error('it was never ended')
  }
  expect(await tellsIn()).toMatchObject([{ state: 'failed', error: 'no daemon took it' }])
  expect(await teller.poll()).toEqual([])
}, 90_000)

test('what waited in an older copy may have been told, and is not told again', async () => {
  await clear()
  const teller = await daemon(TELLS)
  await teller.report()
  const { store } = hub
  const found = { kind: 'failover', realm_id: hub.realm, count: 1, raised: 2, process: crypto.randomUUID() } as const
  const copy = await store.write(tx => holdJobsOfCopy(store, tx, { ...found, now: Date.now(), lived: Date.now() }))
  expect(await tellsIn()).toMatchObject([{ state: 'unknown' }])
  expect(await teller.poll()).toEqual([])
  await store.write(tx => tx.delete(store.copies).where(eq(store.copies.id, copy.id)))
})

test('only an admin of the realm says who is told, and only accounts are taken', async () => {
  const wrong = async (given: Data) =>
    (await hub.call(hub.admin, 'realms/update', { realm_id: hub.realm, notify: given })).status
  for (const given of [{ on_fail: ['chat'] }, { on_fail: ['a b:c'] }, { on_fail: ['chat:x', 'chat:x'] }, {}]) {
    expect([given, await wrong(given)]).toEqual([given, 400])
  }
  expect((await notify(null)).notify).toBeNull()
  const { token: member } = await hub.account('ann')
  await hub.ok(hub.admin, 'realms/add_member', { realm_id: hub.realm, username: 'ann', role: 'operator' })
  const refused = await hub.call(member, 'realms/update', { realm_id: hub.realm, notify: { on_fail: ['chat:ops'] } })
  expect(refused.status).toBe(403)
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, limit: 100 })
  const said = audit.map(({ action, target }: Data) => `${action} ${target}`)
  expect(said).toContain('realms/update notify {"on_fail":["chat:ops"]}')
})
