// A hub or a home that was restored from an older copy.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, rmSync } from 'node:fs'
import { eq } from 'drizzle-orm'
import { until } from '../support/bounded.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { type ServedDaemon, serveDaemon } from '../support/served-daemon.ts'

const TEAM = `
name: "@admin/echo"
version: 1.0.0
phases: [{ name: say, agent: exec, commands: [{ name: say, run: echo hello }] }]
`

let hub: TestHub
let daemon: ServedDaemon
const home = folder()
let env: Record<string, string>

beforeAll(async () => {
  hub = await startTestHub({ apart: true })
  await hub.addTeam(TEAM)
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token }
  daemon = await serveDaemon({ home, env })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

const listed = async () => (await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })).daemons

async function runs(): Promise<string> {
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/echo' })
  const state = async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state === 'completed'
  await until(state, 'the end of a run', 20_000)
  return run_id
}

const present = async () => (await listed()).filter((row: { status: string }) => row.status !== 'removed')

test('the daemon enrols again by itself, takes runs, and reports those that the copy does not have', async () => {
  const before = await runs()
  const [{ id }] = await present()
  const { daemons, runs: rows } = hub.store
  await hub.restart({}, () =>
    hub.store.write(async tx => {
      await tx.delete(rows)
      await tx.delete(daemons)
    }),
  )
  await until(async () => (await listed())[0]?.id === id, 'the daemon enrols again', 20_000)
  await runs()
  const again = async () => (await hub.call(hub.admin, 'runs/get', { run_id: before })).data?.state === 'completed'
  await until(again, 'the earlier run is reported again', 20_000)
})

test('an idle daemon reports again what the copy does not have', async () => {
  const run_id = await runs()
  const { daemons, runs: rows } = hub.store
  await hub.restart({}, () =>
    hub.store.write(async tx => {
      await tx.delete(rows)
      await tx.delete(daemons)
    }),
  )
  const again = async () => (await hub.call(hub.admin, 'runs/get', { run_id })).data?.state === 'completed'
  await until(again, 'the run is reported again', 20_000)
})

test('an idle daemon tells a copy that knows it what has changed since', async () => {
  const run_id = await runs()
  const { daemons, runs: rows } = hub.store
  await hub.restart({}, () =>
    hub.store.write(async tx => {
      await tx.delete(rows).where(eq(rows.run_id, run_id))
      await tx.update(daemons).set({ acked_seq: 1, agents: [] })
    }),
  )
  const again = async () => (await hub.call(hub.admin, 'runs/get', { run_id })).data?.state === 'completed'
  await until(again, 'the run is reported again', 20_000)
  const offered = async () => (await hub.store.db.select().from(daemons))[0]!.agents!.length > 0
  await until(offered, 'the agents are offered again', 20_000)
})

test('a daemon whose home is an older copy is another one to the hub, and tells it what it does from then on', async () => {
  await runs()
  await daemon.stop()
  const copy = folder()
  cpSync(home, copy, { recursive: true })
  const start = () => serveDaemon({ home, env })
  daemon = await start()
  for (let run = 0; run < 4; run++) await runs()
  await daemon.stop()
  rmSync(home, { recursive: true })
  cpSync(copy, home, { recursive: true })
  const [former] = await listed()
  daemon = await start()
  await runs()
  expect(await listed()).toHaveLength(2)
  await hub.ok(hub.admin, 'daemons/remove', { daemon_id: former!.id })
}, 90_000)

test('a run that the copy has as waiting stays with the daemon that executes it, and is cancelled there', async () => {
  await hub.addTeam(
    'name: "@admin/asks"\nversion: 1.0.0\nphases: [{ name: ask, type: gate, review: { prompt: Go? } }]\n',
  )
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team: '@admin/asks' })
  const here = async () => (await daemon.call('/v1/runs/get', { run_id })).state
  const there = async () => (await hub.ok(hub.admin, 'runs/get', { run_id })).state
  await until(async () => (await there()) === 'awaiting_input', 'the run', 20_000)
  const { jobs, runs: rows } = hub.store
  const ofRun = eq(jobs.run_id, run_id)
  const [kept] = await hub.store.db.select().from(jobs).where(ofRun)
  await hub.restart({}, () =>
    hub.store.write(async tx => {
      const before = { state: 'waiting', leased_to: null, lease_id: null, lease_until: null, deliveries: 0 } as const
      await tx.update(jobs).set(before).where(ofRun)
      await tx.update(rows).set({ state: 'queued', daemon_id: null, attempt: 0 }).where(eq(rows.run_id, run_id))
    }),
  )
  const accepted = async () => {
    const [job] = await hub.store.db.select().from(jobs).where(ofRun)
    return job!.state === 'accepted' && job!.leased_to === kept!.leased_to
  }
  await until(accepted, 'the daemon accepts the job again', 20_000)
  await hub.ok(hub.admin, 'dispatch/cancel', { run_id })
  await until(async () => (await here()) === 'cancelled', 'the cancel', 20_000)
})

test('a daemon whose realm was deleted goes to no other one by itself, and says why', async () => {
  const slug = `r${crypto.randomUUID()}`
  const { id: realm } = await hub.ok(hub.admin, 'realms/create', { org_id: 1, slug, name: 'short' })
  const { token } = await hub.realmToken(hub.admin, realm)
  const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token }
  const other = await serveDaemon({ home: folder(), env })
  const { id: tokenId } = (await hub.ok(hub.admin, 'auth/get_tokens', { limit: 100 })).tokens.find(
    (found: { realm_ids?: string[] }) => found.realm_ids?.includes(realm),
  )
  const { tokenRealms } = hub.store
  await hub.store.write(tx => tx.insert(tokenRealms).values({ token_id: tokenId, realm_id: hub.realm }))
  await hub.ok(hub.admin, 'realms/delete', { realm_id: realm })
  await until(() => other.output.stderr.includes('there is no daemon'), 'the daemon is told', 40_000)
  await Bun.sleep(3_000)
  expect(await present()).toHaveLength(1)
  expect(other.output.stderr).toContain(realm)
  await other.stop()
}, 90_000)

test('a daemon that was removed stays away until it is started again', async () => {
  const [{ id }] = await listed()
  await hub.ok(hub.admin, 'daemons/remove', { daemon_id: id })
  await until(() => daemon.output.stderr.includes(`daemon ${id} was removed`), 'the daemon is told', 40_000)
  await Bun.sleep(3_000)
  expect(await present()).toEqual([])
})
