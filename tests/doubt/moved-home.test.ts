// A home that was moved and not copied: its person says so, the hub goes on with it as the same daemon, and refuses the
// process at the former place. Of two homes that no mark tells apart, as those of a machine and of its snapshot, the hub
// serves the later start.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { type CountingVendor, copyOf, countingVendor, homeWithFinds, writer } from '../support/copied-home.ts'
import { command } from '../support/daemon.ts'
import { folder } from '../support/folder.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { type ServedDaemon, serveDaemon } from '../support/served-daemon.ts'
import { standing } from '../support/standing.ts'

let hub: TestHub
let vendor: CountingVendor
let team: string
beforeAll(async () => {
  hub = await startTestHub()
  vendor = countingVendor()
  team = await hub.addTeam(writer('http', vendor, 'one', 'two', 'three').replace('@local', '@admin'))
})
afterAll(() => Promise.all([hub.stop(), vendor.stop()]))

interface Listed {
  daemon_id: string
  status: string
}
const daemonOf = async (daemon_id: string): Promise<Listed> => hub.ok(hub.admin, 'daemons/get', { daemon_id })
const present = async (): Promise<Listed[]> =>
  (await hub.ok(hub.admin, 'daemons/list', { realm_id: hub.realm })).daemons.filter(
    ({ status }: Listed) => status !== 'removed',
  )

async function enrolled(): Promise<{ daemon: ServedDaemon; id: string; env: Record<string, string> }> {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const home = homeWithFinds()
  writeFileSync(join(home, 'settings.yml'), 'network: { allow: [127.0.0.1] }\n', { mode: 0o600 })
  const env = { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token }
  const daemon = await serveDaemon({ home, env })
  return { daemon, env, id: (await standing(home)).hub.daemon_id }
}

async function inTheMiddle() {
  const { daemon: original, id } = await enrolled()
  vendor.hold('two')
  const before = vendor.written().two ?? 0
  const { run_id } = await hub.ok(hub.admin, 'dispatch/run', { realm_id: hub.realm, team, daemon_id: id })
  await until(() => (vendor.written().two ?? 0) > before, 'the second write')
  return { original, id, run_id, copy: copyOf(original.home) }
}

test('a home that was moved is the same daemon, and the former one is refused and says what to do', async () => {
  const { original, id, run_id, copy } = await inTheMiddle()
  // As the first command at the new place.
  expect(await command(['home', 'moved'], { home: copy })).toMatchObject({ code: 0, stderr: '' })
  const moved = await serveDaemon({ home: copy })
  expect((await standing(copy)).hub.daemon_id).toBe(id)
  await until(() => original.output.stderr.includes('goes on'), 'the former daemon is told', 30_000)
  const told = await standing(original.home)
  expect(told.problems.join('\n')).toMatch(/goes on .*Stop one of the two.*home moved/)
  expect(told.daemon.connected).toBe(false)
  expect((await moved.call('/v1/runs/get', { run_id })).state).toBe('interrupted')
  // The former one does not come back by a restart, and says why.
  vendor.release()
  await original.stop()
  const again = serveDaemon({ home: original.home })
  expect(again).rejects.toThrow(/goes on .*home moved/)
  await again.catch(() => {})
  expect((await daemonOf(id)).status).toBe('online')

  // What was written is not written again without a person, and the hub hears of the end.
  const counts = vendor.written()
  await moved.call('/v1/runs/resume', { run_id })
  for (const phase of ['two', 'three']) {
    const review = await until(async () => {
      const { reviews } = await moved.call('/v1/reviews/list', { state: 'pending' })
      return reviews.find((each: { phase: string }) => each.phase === phase)
    }, `the question of ${phase}`)
    const local = { authorization: `Bearer ${moved.token}` }
    await moved.call('/v1/reviews/decide', { review_id: review.id, decision: 'complete' }, local)
  }
  const state = async () => (await hub.call(hub.admin, 'runs/get', { run_id })).data?.state
  await until(async () => (await state()) === 'completed', 'the end at the hub', 30_000)
  expect(vendor.written()).toEqual(counts)
  await moved.stop()
}, 120_000)

test('a home that was started as a copy first becomes the same daemon again, until it has reported runs', async () => {
  const { original, id, run_id, copy } = await inTheMiddle()
  vendor.release()
  await original.ended(run_id)
  await original.stop()
  const second = await serveDaemon({ home: copy })
  const interim = (await standing(copy)).hub.daemon_id
  expect(interim).not.toBe(id)
  const held = await command(['home', 'moved'], { home: copy })
  expect([held.code, held.stderr]).toEqual([2, expect.stringContaining(`held by process ${process.pid}`)])
  await second.stop()
  const twin = copyOf(copy)
  expect((await command(['home', 'moved'], { home: copy })).code).toBe(0)
  const moved = await serveDaemon({ home: copy })
  expect((await standing(copy)).hub.daemon_id).toBe(id)
  await until(async () => (await daemonOf(interim)).status === 'removed', 'the interim daemon goes')
  const nothing = await command(['home', 'moved'], { home: folder() })
  expect([nothing.code, nothing.stderr]).toEqual([2, expect.stringContaining('nothing has run in')])
  await moved.stop()
  const again = await command(['home', 'moved'], { home: copy })
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('there is nothing to say')])

  // The copy of the copy begins a life of its own, and keeps it.
  const third = await serveDaemon({ home: twin })
  // Its second write gets no answer, so the run is not over when it is cancelled.
  vendor.hold('two')
  const started = await third.call('/v1/runs/start', { team })
  await third.call('/v1/runs/cancel', { run_id: started.run_id })
  vendor.release()
  await third.stop()
  const late = await command(['home', 'moved'], { home: twin })
  expect([late.code, late.stderr]).toEqual([2, expect.stringContaining('a daemon of its own')])
}, 120_000)

test('of two homes with the same marks the hub serves the later start, and the refused one can take over', async () => {
  const { daemon, id } = await enrolled()
  await daemon.stop()
  const { home } = daemon
  // A snapshot of the whole machine: what was is put back into the same files.
  const kept = folder()
  cpSync(home, kept, { recursive: true })
  const first = await serveDaemon({ home })
  const twin = await hubCalls(kept)
  expect(await twin.register(id)).toMatchObject({ status: 409, error: { code: 'conflict', reason: 'moved' } })
  expect(await twin.beat(id)).toMatchObject({ status: 409, error: { reason: 'moved' } })
  expect(await twin.poll(id)).toMatchObject({ status: 409, error: { reason: 'moved' } })
  const logged = (await hub.log()).filter(line => line.includes(id) && line.includes('another place'))
  expect(logged.length).toBeGreaterThan(0)
  // The twin is started again, and so has one start more.
  twin.startAgain()
  expect(await twin.register(id)).toMatchObject({ status: 200 })
  await until(() => first.output.stderr.includes('goes on'), 'the first is told', 30_000)
  await first.stop()
  expect((await command(['home', 'moved'], { home })).code).toBe(0)
  const again = await serveDaemon({ home })
  expect(await twin.beat(id)).toMatchObject({ status: 409, error: { reason: 'moved' } })
  expect((await standing(home)).problems.join()).not.toContain('goes on')
  await again.stop()
  // A daemon of an older version says nothing of its starts, and is served.
  expect(await twin.beat(id, {})).toMatchObject({ status: 200 })
  rmSync(kept, { recursive: true })
}, 120_000)

/** The calls of a process whose home has the same facts as \`home\`, as the clone of a machine makes them. */
async function hubCalls(home: string) {
  const { token } = (await Bun.file(`${home}/settings.yml`).text()).match(/realm_token: (?<token>\S+)/)!.groups!
  const start = crypto.randomUUID()
  const post = async (path: string, body: object) => {
    const reply = await fetch(`${hub.url}/v1/daemons/${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${token}` },
      body: JSON.stringify(body),
    })
    return { status: reply.status, ...((await reply.json()) as { error?: object }) }
  }
  const said = { starts: 2, start }
  return {
    startAgain: () => void said.starts++,
    register: (daemon_id: string) => post('register', { daemon_id, name: 'twin', ...said }),
    beat: (daemon_id: string, say: object = said) => post('heartbeat', { daemon_id, ...say }),
    poll: (daemon_id: string) => post('poll', { daemon_id, ...said }),
  }
}

test('the hub names both by their ids where they have one name', async () => {
  const { original, copy } = await inTheMiddle()
  const second = await serveDaemon({ home: copy })
  const ids = await Promise.all([original, second].map(async ({ home }) => (await standing(home)).hub.daemon_id))
  expect(new Set(ids).size).toBe(2)
  const listed = (await present()).map(({ daemon_id }) => daemon_id)
  expect(listed).toEqual(expect.arrayContaining(ids))
  const { audit } = await hub.ok(hub.admin, 'audit/list', { org_id: 1, action: 'daemons/register', limit: 100 })
  expect(audit.map(({ target }: { target: string }) => target)).toEqual(expect.arrayContaining(ids))
  vendor.release()
}, 60_000)
