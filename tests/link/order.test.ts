// The order of runs and reviews at a hub and its daemon after the clock of one of them was fifty days ahead.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { until } from '../support/bounded.ts'
import { files } from '../support/daemon.ts'
import { startTestHub, type TestHub } from '../support/hub.ts'
import { type ServedDaemon, serveDaemon } from '../support/served-daemon.ts'
import { runChange } from '../support/sync.ts'

const AHEAD_MS = 50 * 86_400_000

let hub: TestHub
let daemon: ServedDaemon
beforeAll(async () => {
  hub = await startTestHub()
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  daemon = await serveDaemon({ env: { CADRE_HUB_URL: hub.url, CADRE_REALM_TOKEN: token, CADRE_DAEMON_NAME: 'one' } })
})
afterAll(async () => {
  await daemon.stop()
  await hub.stop()
})

const text = (name: string) => `name: "${name}"
version: 1.0.0
phases: [{ name: ask, type: gate, commands: [{ name: yes, run: "true" }] }]
`

test('the newest run is the one that came last, at the hub and at the daemon', async () => {
  const { token } = await hub.ok(hub.admin, 'auth/generate_token', { type: 'user', name: 'endless' })
  await hub.addTeam(text('@admin/quick'))
  const path = join(files({ 'quick/team.yml': text('@local/quick') }), 'quick')

  const atDaemon = async (): Promise<string[]> => {
    const { runs } = await daemon.call('/v1/runs/list', { root_only: true })
    return runs.map(({ run_id }: { run_id: string }) => run_id)
  }
  const dispatch = async (): Promise<string> => {
    const { run_id } = await hub.ok(token, 'dispatch/run', { realm_id: hub.realm, team: '@admin/quick' })
    await until(async () => (await atDaemon()).includes(run_id), 'the daemon has the run')
    return run_id
  }
  const local = async (): Promise<string> => (await daemon.call('/v1/runs/start', { path })).run_id

  await hub.skew(AHEAD_MS)
  const ahead = await dispatch()
  await hub.skew(0)
  const made = [ahead]
  const make = async (...starts: (() => Promise<string>)[]) => {
    for (const begin of starts) made.unshift(await begin())
  }
  await make(local, dispatch, dispatch, local, dispatch)
  // Another process of the hub knows the greatest id from the database.
  await hub.restart()
  await make(dispatch, local, local)
  expect(await atDaemon()).toEqual(made)

  const { runs } = await hub.ok(token, 'runs/list', { realm_id: hub.realm, root_only: true })
  const dispatched = runs.map(({ run_id }: { run_id: string }) => run_id)
  expect(dispatched).toEqual(made.filter(id => dispatched.includes(id)))
  expect(dispatched).toHaveLength(5)
}, 60_000)

test('the newest review is the one that was asked last, whatever the clock of its daemon was', async () => {
  const { token } = await hub.realmToken(hub.admin, hub.realm)
  const { daemon_id } = await hub.ok(token, 'daemons/register', { name: 'by hand' })
  await hub.addTeam(text('@admin/asks'))
  const epoch = crypto.randomUUID()
  let seq = 0
  const asked: string[] = []
  const report = async (reviews: { created_at: number }[]) => {
    const changes = reviews.flatMap(({ created_at }) => {
      const [run_id, id] = [crypto.randomUUID(), crypto.randomUUID()]
      asked.unshift(id)
      const question = { phase: 'ask', kind: 'gate', reason: 'gate', prompt: 'Go on?', entries: [] }
      const answer = { decision: null, decided_by: null, decided_at: null }
      const review = { id, run_name: null, ...question, ...answer, state: 'pending', created_at }
      return [
        { ...runChange(run_id, { team: '@admin/asks', state: 'awaiting_input' }), seq: ++seq },
        { seq: ++seq, run_id, attempt: 1, kind: 'review', review },
      ]
    })
    const from_seq = changes[0]!.seq
    const { rejected } = await hub.ok(token, 'runs/sync', { daemon_id, epoch, from_seq, changes })
    expect(rejected).toEqual([])
  }
  await report([{ created_at: Date.now() + AHEAD_MS }])
  await report([{ created_at: Date.now() }])
  expect(await pending()).toEqual(asked)
  // A daemon that was away reports what was asked before.
  const known = asked.slice()
  await report([{ created_at: Date.now() - 20_000 }, { created_at: Date.now() - 30_000 }])
  expect(await pending()).toEqual([...known, asked[1]!, asked[0]!])

  async function pending(): Promise<string[]> {
    const { reviews } = await hub.ok(hub.admin, 'reviews/list', { realm_id: hub.realm, state: 'pending' })
    return reviews.map(({ id }: { id: string }) => id)
  }
})
